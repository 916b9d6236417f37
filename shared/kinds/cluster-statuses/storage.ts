/** The read-only storage of the one ClusterStatus: a strongly consistent read of one item, and half a unit. */
import type { KindStorage } from '../../api/kind-storage.ts';
import { type ResourceStorage, readOnlyStorage } from '../../api/resource-storage.ts';
import type { Clock } from '../../clock.ts';
import { type FleetStore, fleetStore } from '../../fleet/fleet-store.ts';
import type { Policy } from '../../fleet/policy.ts';
import type { ItemStore } from '../../store/item-store.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import { readForm } from '../../watches/stream-form-store.ts';
import { CLUSTER_STATUS } from './resource.ts';
import { clusterStatusObject, clusterstatuses } from './serve.ts';

export function clusterStatusStorage(
  fleet: Pick<FleetStore, 'readState'>,
  { clock, policy, items }: { readonly clock: Clock; readonly policy: Policy; readonly items: Pick<ItemStore, 'get'> },
): ResourceStorage {
  const read = async () => {
    // Without streams the function may not read it.
    const watches = policy.watchMode === 'stream' ? await readForm(items) : undefined;
    return clusterStatusObject(await fleet.readState(), { nowMs: clock.nowMs(), policy, watches });
  };
  return readOnlyStorage({
    get: async (_namespace, name) => (name === CLUSTER_STATUS ? read() : undefined),
    list: async ({ continueAfter }) => ({ items: continueAfter === undefined ? [await read()] : [] }),
    listVersion: async () => String(clock.nowMs() * RESOURCE_VERSIONS_PER_MS),
  });
}

export const clusterStatusStorages: readonly KindStorage[] = [
  [clusterstatuses, (_, { items, clock, policy }) => clusterStatusStorage(fleetStore(items), { clock, policy, items })],
];
