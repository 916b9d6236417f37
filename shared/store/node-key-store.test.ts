import { expect, it } from 'vitest';
import { memoryItemStore } from '../adapters/memory/item-store.ts';
import type { TransactWrite } from '../ports/item-store.ts';
import { nodeKeyStore } from './node-key-store.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const IDENTITY = { nodeName: 'n1', uid: 'u1', createdAtMs: NOW_MS, keys: [], source: 'user/admin' };
/** Refused: the item is not there. */
const REFUSED: TransactWrite = {
  kind: 'check',
  key: { table: 'control', pk: 'absent', sk: 'absent' },
  when: { kind: 'itemExists' },
};

it('an enrolment says that the name is taken, also when what goes along is refused as well', async () => {
  const store = nodeKeyStore(memoryItemStore());
  const enrol = (along: TransactWrite[]) => store.enrol(IDENTITY, { nowMs: NOW_MS, along, pause: async () => {} });
  expect(await enrol([REFUSED])).toEqual({ kind: 'alongRefused' });
  expect((await enrol([])).kind).toBe('enrolled');
  expect(await enrol([])).toEqual({ kind: 'taken' });
  expect(await enrol([REFUSED])).toEqual({ kind: 'taken' });
});
