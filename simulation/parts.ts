/** Parts of the world that only some seeds have. A seed has the same ones whatever its other options are. */
import { hashOf, seededFraction } from './seeded-random.ts';

export const PARTS = {
  watches: 'clients that list and watch nodes and pods',
  podCidrs: 'cluster CIDRs with about as many blocks as there are Nodes',
  volumes: 'pods with EBS volumes, and a driver that attaches them',
  scheduling: 'pods without a node, which the scheduler binds',
  taints: 'people who taint nodes by hand, and pods that tolerate it for a while',
  workloads: 'people who use Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and owners of ConfigMaps',
  offlineStop:
    'StatefulSets, Recreate Deployments and Jobs that must not run twice, on machines that lose link, power or time',
  profiles: 'machines of three profiles, and people who change the label that selects them',
  plannedSilence: 'machines that announce a silence, and keep, break or withdraw their promise',
  heartbeatUrl:
    'machines that send heartbeats to the URL of function heartbeat, with or without the API as the other way',
  relays: 'sites with a relay, through which most of their machines send heartbeats',
  witnesses: 'sites with machines that report each other as silent, and troubles of their networks and relays',
  hub: 'one or two hubs that copy the cluster, with clients that read and write there',
  reschedule: 'with offlineStop and hub: a SitePolicy for all machines, and a hub that moves pods of silent ones',
  markParts: 'ticks that mark at most one node themselves: node-marker marks the others, in parts',
} as const;
export type PartName = keyof typeof PARTS;
export const PART_NAMES = Object.keys(PARTS) as readonly PartName[];

const SHARES: Readonly<Record<PartName, number>> = {
  watches: 0.6,
  podCidrs: 0.5,
  volumes: 0.5,
  markParts: 0.4,
  profiles: 0.4,
  plannedSilence: 0.4,
  heartbeatUrl: 0.3,
  relays: 0.4,
  // Only where it is named: it came later than most of failed-seeds.json.
  witnesses: 0,
  scheduling: 0.5,
  taints: 0.5,
  workloads: 0.25,
  offlineStop: 0.2,
  hub: 0,
  reschedule: 0,
};

/** Each by a number of its own: another part moves none of them. */
export const partsOf = (seed: number): readonly PartName[] =>
  PART_NAMES.filter((name) => seededFraction(hashOf(`${seed} part ${name}`))() < SHARES[name]);

export const usesWorkloads = (parts: readonly PartName[]): boolean =>
  parts.includes('workloads') || parts.includes('offlineStop');
