import { expect, it } from 'vitest';
import { earliestRows } from '../../../shared/ticks/due-rows.ts';
import { jobCluster } from '../../../test/support/job-cluster.ts';

it('a Job that a quota keeps from creating pods is looked at again after a minute', async () => {
  const cluster = jobCluster();
  const hard = { pods: '0' };
  await cluster.create('resourcequotas', {
    kind: 'ResourceQuota',
    metadata: { name: 'q' },
    spec: { hard },
    status: { hard, used: { pods: '0' } },
  } as never);
  await cluster.createJob({ completions: 1 }, 'pi');
  await cluster.settle();
  expect(await cluster.pods()).toEqual([]);
  const dueOf = async () =>
    (await earliestRows(cluster.tables)).rows.flatMap(({ key, atMs }) =>
      key.kind === 'workload' && key.ref.name === 'pi' ? [atMs] : [],
    );
  expect(await dueOf()).toEqual([cluster.now() + 60_000]);
  const free = jobCluster();
  await free.createJob({ completions: 1 }, 'pi');
  await free.settle();
  expect((await earliestRows(free.tables)).rows.filter(({ key }) => key.kind === 'workload')).toEqual([]);
});
