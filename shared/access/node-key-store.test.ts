import { expect, it } from 'vitest';
import type { TransactWrite } from '../store/item-store.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { nodeKeyStore } from './node-key-store.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const IDENTITY = { nodeName: 'n1', uid: 'u1', createdAtMs: NOW_MS, keys: [], source: 'user/admin' };
/** Refused: the item is not there. */
const REFUSED: TransactWrite = {
  kind: 'check',
  key: { table: 'control', pk: 'absent', sk: 'absent' },
  when: { kind: 'itemExists' },
};

it('an enrolment reports that the name is in use, also when the write beside it is refused too', async () => {
  const store = nodeKeyStore(memoryItemStore());
  const enrol = (along: TransactWrite[]) => store.enrol(IDENTITY, { nowMs: NOW_MS, along, pause: async () => {} });
  expect(await enrol([REFUSED])).toEqual({ kind: 'alongRefused' });
  expect((await enrol([])).kind).toBe('enrolled');
  expect(await enrol([])).toEqual({ kind: 'taken' });
  expect(await enrol([REFUSED])).toEqual({ kind: 'taken' });
});
