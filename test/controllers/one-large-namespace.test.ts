/** What one namespace with many pods does to the controllers: each count of its pods must be worth its cost. */
import { describe, expect, it } from 'vitest';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { MERGE } from '../support/api-in-memory.ts';
import { ScheduledCluster } from '../support/scheduled-cluster.ts';
import { servedWorkloads } from '../support/served-workloads.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const PODS = `${NAMESPACE}/pods`;
const SELECTOR = { app: 'x' };
const pod = (name: string) => ({
  metadata: { name, labels: SELECTOR },
  spec: { containers: [{ name: 'c', image: 'i' }] },
});

const PODS_COUNTED = 1_700;

/** Counts what reads all pods of the namespace. */
function readingPods() {
  const state = { reads: 0 };
  const store = (items: ItemStore): ItemStore => ({
    ...items,
    query(request) {
      // The first page of the first shard: once per list.
      if (request.pk === 'o#pods#00' && request.after === undefined) {
        state.reads += 1;
      }
      return items.query(request);
    },
  });
  return { state, store };
}

const budget = {
  metadata: { name: 'b' },
  spec: { minAvailable: 1, selector: { matchLabels: SELECTOR } },
};

describe('one namespace with many pods', () => {
  it('has its budgets and Services counted a millisecond per pod apart, and correctly in the end', async () => {
    const { state, store } = readingPods();
    const cluster = servedWorkloads({ controllerStore: store });
    const create = (from: number, to: number) =>
      Promise.all(
        Array.from({ length: to - from }, (_, index) =>
          cluster.api.send('POST', PODS, { body: pod(`p${from + index}`) }),
        ),
      );
    for (let from = 0; from < PODS_COUNTED; from += 100) await create(from, from + 100);
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    for (const name of ['a', 'b', 'c']) await cluster.ok('POST', budgets, { ...budget, metadata: { name } });
    await cluster.settle();
    await cluster.tickAfter(60_000);
    state.reads = 0;
    const startMs = cluster.api.nowMs();
    for (let index = 0; index < 20; index += 1) {
      await create(PODS_COUNTED + index, PODS_COUNTED + index + 1);
      const body = { spec: { minAvailable: 2 + index } };
      await cluster.api.send('PATCH', `${budgets}/a`, { body, contentType: MERGE });
      await cluster.settle();
      await cluster.tickAfter(1_000);
    }
    const seconds = (cluster.api.nowMs() - startMs) / 1_000;
    // A count of the three budgets is three reads, and pauses for over five seconds.
    expect(state.reads / 3).toBeLessThanOrEqual(1 + seconds / 5);
    expect(state.reads / 3).toBeGreaterThanOrEqual(3);
    await cluster.tickAfter(30_000);
    expect((await cluster.ok('GET', `${budgets}/a`)).status.desiredHealthy).toBe(21);
    expect((await cluster.ok('GET', `${budgets}/b`)).status.expectedPods).toBe(PODS_COUNTED + 20);
  });

  it('has its pods read once for all Services, and for each one with other endpoints', async () => {
    const { state, store } = readingPods();
    const cluster = servedWorkloads({ controllerStore: store });
    for (let index = 0; index < 150; index += 1) await cluster.api.send('POST', PODS, { body: pod(`p${index}`) });
    const selector = (index: number) => ({ app: index === 0 ? 'y' : 'x' });
    for (let index = 0; index < 40; index += 1) {
      const body = { metadata: { name: `s${index}` }, spec: { selector: selector(index), ports: [{ port: 80 }] } };
      await cluster.ok('POST', `${NAMESPACE}/services`, body);
    }
    await cluster.settle();
    for (let minute = 0; minute < 3; minute += 1) await cluster.tickAfter(60_000);
    const address = async (name: string, ip: string) => {
      const stored = await cluster.ok('GET', `${PODS}/${name}`);
      const status = { ...stored.status, phase: 'Running', podIP: ip, podIPs: [{ ip }] };
      await cluster.ok('PUT', `${PODS}/${name}/status`, { ...stored, status });
    };
    // 39 counts of 150 pods: the next one waits.
    await address('p0', '10.0.0.1');
    await cluster.settle();
    await cluster.api.send('POST', PODS, { body: { ...pod('q'), metadata: { name: 'q', labels: { app: 'y' } } } });
    await address('q', '10.0.0.2');
    state.reads = 0;
    await cluster.settle();
    expect(state.reads).toBe(0);
    await cluster.tickAfter(35_000);
    // For all, for `s0`, and for its former slice, which is removed.
    expect(state.reads).toBe(3);
    const { subsets } = await cluster.ok('GET', `${NAMESPACE}/endpoints/s0`);
    expect(subsets[0].notReadyAddresses[0].ip).toBe('10.0.0.2');
  });

  it('has its budgets counted for no pod that nothing can be evicted for', async () => {
    const { state, store } = readingPods();
    const cluster = new ScheduledCluster({ between: store });
    await cluster.node('n1', { unschedulable: true });
    await cluster.send('POST', '/apis/policy/v1/namespaces/default/poddisruptionbudgets', { body: budget });
    await cluster.settle();
    state.reads = 0;
    for (let index = 0; index < 20; index += 1) await cluster.pod(`p${index}`, { labels: SELECTOR });
    await cluster.settle();
    expect(await cluster.nodeOf('p19')).toBe('');
    expect(state.reads).toBeLessThanOrEqual(1);
  });
});
