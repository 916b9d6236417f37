/** What an idle elected operator costs: client-go renews its Lease by a GET and a PUT every two seconds. */
import { PRICES } from '../shared/cost/prices.ts';
import { clusterObjects } from '../shared/kinds/cluster-objects.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { ConsumedUnits } from '../shared/store/item-store.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { apiInMemory } from '../test/support/api-in-memory.ts';
import { type Benchmark, rounded } from './benchmark.ts';

const RENEWALS = 100;
const RENEW_SECONDS = 2;
const MONTH_SECONDS = 730 * 3_600;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

export const elections: Benchmark = {
  name: 'elections',
  about: 'units of a renewal of an elected operator, and dollars per month',
  smallest: [],
  async run(report) {
    const used = { reads: 0, writes: 0 };
    const onConsumed = ({ readUnits, writeUnits }: ConsumedUnits): void => {
      used.reads += readUnits;
      used.writes += writeUnits;
    };
    const items = memoryItemStore({ onConsumed });
    const api = apiInMemory({ items });
    await api.send('POST', LEASES, { body: { metadata: { name: 'operator' }, spec: { holderIdentity: 'one' } } });
    const renewed = (lease: KubeObject, second: number): KubeObject => ({
      ...lease,
      spec: {
        ...lease.spec,
        leaseDurationSeconds: 15,
        renewTime: `2026-01-01T00:00:00.${String(second).padStart(6, '0')}Z`,
      },
    });
    const byRequests = async (second: number): Promise<void> => {
      const { body } = await api.send('GET', `${LEASES}/operator`);
      await api.send('PUT', `${LEASES}/operator`, { body: renewed(body, second) });
    };
    const random = { uuid: () => '', fraction: () => 0.5 };
    const objects = clusterObjects({ items, random, clock: { nowMs: api.nowMs } });
    const ref = { resource: 'leases', namespace: 'default', name: 'operator' };
    const byCommit = async (second: number): Promise<void> => {
      const previous = (await objects.get(ref))!;
      await objects.commit({ writes: [{ kind: 'update', ref, object: renewed(previous, second), previous }] });
    };
    for (const [what, renew] of Object.entries({ renewal: byRequests, 'the same as a commit': byCommit })) {
      // What is read once is not counted.
      await renew(1);
      Object.assign(used, { reads: 0, writes: 0 });
      for (let count = 0; count < RENEWALS; count += 1) await renew(2 + count);
      const { reads, writes } = used;
      const perMonth = MONTH_SECONDS / RENEW_SECONDS / RENEWALS;
      report({
        what,
        writeUnits: rounded(writes / RENEWALS, 2),
        readUnits: rounded(reads / RENEWALS, 2),
        tableDollarsPerMonth: rounded(perMonth * (reads * PRICES.readUnit + writes * PRICES.writeUnit), 2),
      });
    }
  },
};
