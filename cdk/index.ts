/** What the published package exports. */

export type { AccessEntry } from '../shared/access/access-entry.ts';
export { InvalidAccessEntriesError } from './lib/access-entries-source.ts';
export { Capacity } from './lib/capacity.ts';
export { type CustomDomain, Encryption, InvalidPropsError, type PropFault } from './lib/cluster-options.ts';
export type { NodekeeperClusterProps } from './lib/cluster-props.ts';
export type { ClusterNetwork } from './lib/network.ts';
export { NodekeeperCluster } from './lib/nodekeeper-cluster.ts';
export { InvalidPolicyError } from './lib/policy-source.ts';
export type { RestoredTable, RestoredTables, StreamedTable } from './lib/restored-tables.ts';
