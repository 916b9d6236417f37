/** Creations of objects that nothing acts on: refused by the policy `unenforcedKinds: refuse`, or answered with a warning. */

import { defined } from '../../../shared/defined.ts';
import { countServiceReaders, READERS_COUNTED_MAX } from '../../../shared/fleet/nodes/service-readers.ts';
import { fleetStore } from '../../../shared/fleet/zones/fleet-store.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { type ActingNodes, creationEffect, effectOf } from '../../../shared/kinds/effects.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import type { ServeDependencies } from '../dependencies.ts';

/** Nodes that enforce NetworkPolicies: two reads. @throws StoreFault */
export async function policyEnforcers(items: ItemStore): Promise<ActingNodes> {
  const acting = await countServiceReaders(items);
  if (acting === 0 || acting === READERS_COUNTED_MAX) return { acting };
  const { nodes } = await fleetStore(items).readState();
  return { acting, ...defined({ all: nodes }) };
}

/** @returns warnings @throws StatusError 403 */
export async function admitEffect(
  { unenforcedKinds, signsCertificates, policyEnforcers: enforcers }: ServeDependencies,
  descriptor: ResourceDescriptor,
  name: string,
): Promise<readonly string[]> {
  const nodes = effectOf(descriptor)?.byServiceReaders === undefined ? undefined : await enforcers();
  const { warning, unenforced } = creationEffect(descriptor, { signsCertificates, ...defined({ nodes }) });
  if (unenforced !== undefined && unenforcedKinds === 'refuse') {
    const why = `the policy has unenforcedKinds: refuse, and nothing acts on it: ${unenforced}`;
    throw status.forbidden(descriptor, name, why);
  }
  return warning === undefined ? [] : [warning];
}
