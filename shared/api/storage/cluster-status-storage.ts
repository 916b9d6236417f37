/** The read-only storage of the one ClusterStatus: a strongly consistent read of one item. */
import type { Policy } from '../../domain/policy.ts';
import type { Clock } from '../../ports/clock.ts';
import type { FleetStore } from '../../store/fleet-store.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import { CLUSTER_STATUS, clusterStatusObject } from '../kinds/cluster-statuses.ts';
import { readOnlyStorage } from './read-only-storage.ts';
import type { ResourceStorage } from './resource-storage.ts';

export function clusterStatusStorage(
  fleet: Pick<FleetStore, 'readState'>,
  { clock, policy }: { readonly clock: Clock; readonly policy: Policy },
): ResourceStorage {
  const read = async () => clusterStatusObject(await fleet.readState(), { nowMs: clock.nowMs(), policy });
  return readOnlyStorage({
    get: async (_namespace, name) => (name === CLUSTER_STATUS ? read() : undefined),
    list: async ({ continueAfter }) => ({ items: continueAfter === undefined ? [await read()] : [] }),
    listVersion: async () => String(clock.nowMs() * RESOURCE_VERSIONS_PER_MS),
  });
}
