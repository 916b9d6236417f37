import { defined } from '../../../shared/defined.ts';
import { fleetStore } from '../../../shared/fleet/fleet-store.ts';
import { countServiceReaders, READERS_COUNTED_MAX } from '../../../shared/fleet/nodes/service-readers.ts';
import type { ActingNodes } from '../../../shared/kinds/effects.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';

/** Nodes that enforce NetworkPolicies: two reads. @throws StoreFault */
export async function policyEnforcers(items: ItemStore): Promise<ActingNodes> {
  const acting = await countServiceReaders(items);
  if (acting === 0 || acting === READERS_COUNTED_MAX) return { acting };
  const { nodes } = await fleetStore(items).readState();
  return { acting, ...defined({ all: nodes }) };
}
