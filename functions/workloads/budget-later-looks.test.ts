import { expect, it } from 'vitest';
import { earliestRows } from '../../shared/ticks/due-rows.ts';
import { workloadCluster } from '../../test/support/workload-cluster.ts';

it('a new budget is counted again when no function can still know the budgets without it', async () => {
  const cluster = workloadCluster();
  const spec = { selector: { matchLabels: { app: 'web' } }, minAvailable: 1 };
  await cluster.create('poddisruptionbudgets', {
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web' },
    spec,
  } as never);
  await cluster.settle();
  const dueOf = async () =>
    (await earliestRows(cluster.tables)).rows.flatMap(({ key, atMs }) =>
      key.kind === 'workload' && key.ref.name === 'web' ? [atMs - cluster.now()] : [],
    );
  expect(await dueOf()).toEqual([30_000]);
});
