import { expect, it } from 'vitest';
import type { DecisionDraft } from './decision-record.ts';
import { decisionName } from './decision-store.ts';

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
