import { leases } from '../../heartbeat/lease-kind.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { clusterstatuses } from './cluster-statuses.ts';
import { csinodes } from './csinodes.ts';
import { daemonsets } from './daemonsets.ts';
import { decisions } from './decisions.ts';
import { events, eventsV1 } from './events.ts';
import { bootstraptokens, nodeidentities } from './identities.ts';
import { namespaces } from './namespaces.ts';
import { nodes } from './nodes.ts';
import { poddisruptionbudgets } from './poddisruptionbudgets.ts';
import { pods } from './pods.ts';
import { priorityclasses } from './priorityclasses.ts';
import { volumeattachments } from './volumeattachments.ts';

/** Every resource that is served and stored, in the order of discovery. Self reviews are in self-reviews.ts. */
export const resources: readonly ResourceDescriptor[] = [
  events,
  namespaces,
  nodes,
  pods,
  leases,
  eventsV1,
  poddisruptionbudgets,
  priorityclasses,
  volumeattachments,
  csinodes,
  daemonsets,
  nodeidentities,
  bootstraptokens,
  decisions,
  clusterstatuses,
];

const byPath = new Map(resources.map((each) => [`${each.group}/${each.version}/${each.resource}`, each]));

/** The resource of a path such as /apis/<group>/<version>/<resource>; group '' is the core group. */
export const findResource = (group: string, version: string, resource: string): ResourceDescriptor | undefined =>
  byPath.get(`${group}/${version}/${resource}`);

/** The descriptor of the stored form. It differs for a resource that serves the objects of another one (eventsV1). */
export function storedAs(descriptor: ResourceDescriptor): ResourceDescriptor {
  const { servedFrom } = descriptor;
  if (servedFrom === undefined) return descriptor;
  const stored = resources.find((each) => each.group === servedFrom.group && each.resource === servedFrom.resource);
  if (stored === undefined) throw new Error(`${descriptor.group}/${descriptor.resource}: servedFrom names no resource`);
  return stored;
}

/** The stored resources by plural name, which is unique among them. */
export const findStored = (resource: string): ResourceDescriptor | undefined =>
  resources.find((each) => each.servedFrom === undefined && each.resource === resource);

export {
  bootstraptokens,
  csinodes,
  daemonsets,
  decisions,
  events,
  eventsV1,
  leases,
  namespaces,
  nodeidentities,
  nodes,
  poddisruptionbudgets,
  pods,
  priorityclasses,
  volumeattachments,
};
