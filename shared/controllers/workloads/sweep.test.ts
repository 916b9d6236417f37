import { expect, it } from 'vitest';
import { workloadCluster } from '../../../test/support/workload-cluster.ts';
import { addDue } from './due-store.ts';

it('a sweep runs once per interval, also if its due time is behind many others', async () => {
  const cluster = workloadCluster();
  const sweeps = async () => {
    const { items } = await cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true });
    return items.map(({ sk }) => String(sk)).filter((sk) => sk.endsWith('#sweep'));
  };
  await cluster.tick();
  const planned = await sweeps();
  expect(planned).toHaveLength(1);
  for (let index = 0; index < 250; index += 1) {
    const ref = { resource: 'cronjobs', namespace: 'default', name: `c${index}` };
    await addDue(cluster.tables, { atMs: cluster.now() + 600_000, key: { kind: 'workload', ref } });
  }
  for (let tick = 1; tick <= 5; tick += 1) {
    cluster.advance(60_000);
    await cluster.tick();
    expect(await sweeps()).toEqual(planned);
  }
  cluster.advance(600_000);
  await cluster.tick();
  cluster.advance(5_000);
  await cluster.tick();
  expect(await sweeps()).toHaveLength(1);
  expect(await sweeps()).not.toEqual(planned);
});
