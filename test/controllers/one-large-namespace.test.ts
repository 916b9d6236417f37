/** What one namespace with many pods does to the controllers: each count of its pods must be worth its cost. */
import { describe, expect, it } from 'vitest';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { ScheduledCluster } from '../support/scheduled-cluster.ts';
import { servedWorkloads } from '../support/served-workloads.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const PODS = `${NAMESPACE}/pods`;
const SELECTOR = { app: 'x' };
const pod = (name: string) => ({
  metadata: { name, labels: SELECTOR },
  spec: { containers: [{ name: 'c', image: 'i' }] },
});

/** Counts what reads all pods of the namespace, and makes each such read last. */
function readingPods() {
  const state = { reads: 0, lasting: () => {} };
  const store = (items: ItemStore): ItemStore => ({
    ...items,
    query(request) {
      // The first page of the first shard: once per list.
      if (request.pk === 'o#pods#00' && request.after === undefined) {
        state.reads += 1;
        state.lasting();
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
  it('has its budgets and Services counted a tenth of the time at most, and correctly in the end', async () => {
    const { state, store } = readingPods();
    const cluster = servedWorkloads({ controllerStore: store });
    await cluster.ok('POST', '/apis/policy/v1/namespaces/default/poddisruptionbudgets', budget);
    await cluster.ok('POST', `${NAMESPACE}/services`, {
      metadata: { name: 's' },
      spec: { selector: SELECTOR, ports: [{ port: 80 }] },
    });
    await cluster.settle();
    await cluster.tickAfter(60_000);
    state.reads = 0;
    state.lasting = () => cluster.api.advance(1_000);
    const startMs = cluster.api.nowMs();
    for (let index = 0; index < 60; index += 1) {
      await cluster.ok('POST', PODS, pod(`p${index}`));
      cluster.api.advance(500);
      await cluster.settle();
      if (index % 10 === 9) await cluster.tickAfter(0);
    }
    const seconds = (cluster.api.nowMs() - startMs) / 1_000;
    // Two are counted, and either may run once more for a due time.
    expect(state.reads).toBeLessThanOrEqual(4 * (1 + seconds / 10));
    expect(state.reads).toBeGreaterThanOrEqual(4);
    state.lasting = () => {};
    await cluster.tickAfter(30_000);
    const found = await cluster.ok('GET', '/apis/policy/v1/namespaces/default/poddisruptionbudgets/b');
    expect(found.status.expectedPods).toBe(60);
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
    expect(state.reads).toBeLessThan(20);
  });
});
