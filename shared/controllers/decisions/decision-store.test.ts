import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../../adapters/memory/item-store.ts';
import { defaultPolicy } from '../../domain/policy.ts';
import type { ConsumedUnits } from '../../ports/item-store.ts';
import { ledgerOver } from '../framework/ledger.ts';
import type { DecisionDraft } from './decision-record.ts';
import { decisionName, decisionStore } from './decision-store.ts';

const nameOf = (about: object): string =>
  decisionName({ about, act: 'act', rule: 'rule', atMs: 5, outcome: {} } as unknown as DecisionDraft);

it.each([
  [{ kind: 'Node', name: 'edge-1' }, /^node\.edge-1\.0000000000005-\w+$/],
  [{ kind: 'Pod', namespace: 'shop', name: 'web-0' }, /^pod\.shop\.web-0\.0000000000005-\w+$/],
  [{ kind: 'Zone', name: 'Eu/Central 1' }, /^zone\.eu-central-1-\w+\.0000000000005-\w+$/],
  [{ kind: 'Zone', name: '/hill/' }, /^zone\.hill-\w+\.0000000000005-\w+$/],
  [{ kind: 'Zone', name: '' }, /^zone\.\w+\.0000000000005-\w+$/],
])('a decision about %j has a valid name that shows its object', (about, pattern) => {
  expect(nameOf(about)).toMatch(pattern);
});

it('similar free texts get different names', () => {
  expect(nameOf({ kind: 'Zone', name: 'a/b' })).not.toBe(nameOf({ kind: 'Zone', name: 'a b' }));
  expect(nameOf({ kind: 'Zone', name: 'x'.repeat(300) }).length).toBeLessThanOrEqual(253);
});

describe('a record of more than 1 KB', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const draft: DecisionDraft = {
    act: 'Tainted',
    about: { kind: 'Node', name: 'edge-1', uid: 'u' },
    atMs: nowMs,
    reason: 'Ready is Unknown',
    rule: 'evictions',
    inputs: {
      taints: Array.from({ length: 30 }, (_, index) => ({ key: `example.com/${index}`, effect: 'NoExecute' })),
    },
    outcome: { kind: 'taint' },
  };

  it.each([
    ['compressed', 1],
    ['plain', 2],
  ] as const)('is stored %s for %i write units, and is read back', async (storedObjects, writeUnits) => {
    const units: ConsumedUnits[] = [];
    const items = memoryItemStore({ onConsumed: (each) => units.push(each) });
    await ledgerOver(items, { ...defaultPolicy, storedObjects }).recordOnce(draft, {});
    expect(units.map((each) => each.writeUnits)).toEqual([writeUnits]);
    const { decisions } = await decisionStore(items).list({ nowMs, limit: 10 });
    expect(decisions.map(({ record }) => record)).toMatchObject([draft]);
  });
});
