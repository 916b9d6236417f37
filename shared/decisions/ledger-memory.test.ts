import { expect, it } from 'vitest';
import { defaultPolicy } from '../fleet/policy.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import type { DecisionDraft } from './decision-record.ts';
import { ledgerOver } from './ledger.ts';

/** Names that a ledger remembers. */
const REMEMBERED = 4_096;

it('a ledger writes a decision once, and remembers a bounded number of them', async () => {
  const memory = memoryItemStore();
  let writes = 0;
  const ledger = ledgerOver(
    {
      ...memory,
      write: (...write) => {
        writes += 1;
        return memory.write(...write);
      },
    },
    defaultPolicy,
  );
  const draft = (name: string): DecisionDraft => ({
    act: 'NodeKept',
    about: { kind: 'Node', namespace: '', name, uid: 'u1' },
    atMs: 0,
    reason: 'kept',
    rule: 'cloud',
    inputs: {} as never,
    outcome: {},
  });
  const tell = (name: string) => ledger.recordOnce(draft(name), {});
  await tell('n0');
  await tell('n0');
  expect(writes).toBe(1);
  for (let index = 1; index <= REMEMBERED; index += 1) await tell(`n${index}`);
  expect(writes).toBe(REMEMBERED + 1);
  await tell('n0');
  expect(writes).toBe(REMEMBERED + 2);
});
