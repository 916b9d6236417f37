import { expect, it } from 'vitest';
import type { KubeResourceQuota } from '../../shared/kinds/types.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { syncQuota } from './quotas.ts';

const ref = { resource: 'resourcequotas', namespace: 'd', name: 'q' };
const quota = {
  metadata: { namespace: 'd', name: 'q', uid: 'u' },
  spec: { hard: { 'count/configmaps': '3' } },
} as unknown as KubeResourceQuota;

async function counted(outcomes: readonly ScriptedOutcome[]) {
  const { objects, commits } = scriptedCommits(outcomes, () => quota);
  const outcome = await syncQuota(
    { objects, clock: { nowMs: () => 0 }, definitions: { all: async () => [] } },
    ref,
  ).catch((fault: unknown) => fault);
  return { outcome, commits };
}

it('a quota is counted again when a creation overtakes the count, six times at most', async () => {
  const third = await counted([{ kind: 'conflict', index: 0 }, { kind: 'contended' }, 'committed']);
  expect([third.outcome, third.commits.length]).toEqual([{}, 3]);
  const sixth = await counted([
    ...Array.from({ length: 5 }, (): ScriptedOutcome => ({ kind: 'contended' })),
    'committed',
  ]);
  expect(sixth.outcome).toEqual({});
  const never = await counted([]);
  expect(never.commits).toHaveLength(6);
  expect(never.outcome).toMatchObject({ retryable: true });
});

it('a quota with a status that is too large is given up at once, and the fault says so', async () => {
  const { outcome, commits } = await counted([{ kind: 'tooLarge', index: 0 }]);
  expect(commits).toHaveLength(1);
  expect(outcome).toMatchObject({ code: 'too-large', retryable: false });
});
