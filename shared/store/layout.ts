/**
 * Keys and attributes of the three tables, in one place (docs/decisions/0001-store-layout.md).
 *
 * health   pk `s<shard>` sk node name            one item per node: lease and health digest, target <= 250 B
 *          (health.ts)
 * objects  pk `o#<resource>#<shard>` sk `[namespace/]name`      the object
 *          pk `l#<resource>#<shard>` sk <resourceVersion, 16 digits>   the change log a watch reads, TTL
 *          pk `h#<resource>#<shard>` sk `-`      the head: highest resourceVersion committed in the shard
 *          pk `n#<node name>` sk `namespace/name`            which pods are bound to a node, and since when
 *          pk `w#<owner uid>` sk `<resource>:[namespace/]name`   the objects of an owner (owners.ts)
 *          pk `d#<shard>` sk <about>.<ms>-<hash>             a decision, TTL (decision-store.ts)
 *          pk `ds#<shard>` sk <ms>-<node>                    decisions of one commit about several Nodes, TTL
 *          pk `dp#<shard>` sk <set>.<time>-<hash>            decisions of one commit about pods of one set, TTL
 *          pk `p#<definition>` sk <hash>-<part>              a large text of a definition, TTL (section-store.ts)
 *          pk `dn#<group>` sk `-`                            counts changes of the names of definitions in a group
 *          pk `r#<parked row>` sk `-`                        starts a retry of a parked row, TTL (parked-store.ts)
 * control  pk `fleet` sk `state`                   node-monitor's last claim, gate, total disruption (fleet-store.ts)
 *          pk `fleet` sk `zone#<zone>`              zone state and eviction limiter
 *          pk `fleet` sk `queue#<zone>#<node name>` a node that waits for its limiter
 *          pk `silences` sk <hour>-<hash>-<slot>    silences of live machines in an hour, TTL (silence-store.ts)
 *          pk `refusals` sk <minute>-<hash>          refused requests of an identity, TTL (refusal-store.ts)
 *          pk `witnesses` sk <node name>            machines that it reports as silent, TTL (witness-report-store.ts)
 *          pk `tick#<controller>` sk `-`            the last claim of a controller that stores nothing with it
 *          pk `evictions#<node name>` sk `-`, `p1` …   eviction timers of the node's pods (eviction-timer-store.ts)
 *          pk `evictions-due` sk `<due, 14 digits>#<node name>`   which nodes have one that is due
 *          pk `parked` sk `<resource>#<key>#<uid>`  works of object-stream that are retried (parked-store.ts)
 *          pk `pod-gc` sk `pod#`, `missing#`, `volumes#` and a name, `sweep`   pod-gc's work list (work-list-store.ts)
 *          pk `scheduler` sk `turn`, `order`, `pod#…`       queue of the scheduler (shared/scheduling/queue-store.ts)
 *          pk `use#<shard>` sk <node name>          how often a pod was added to the node (node-use.ts)
 *          pk `node-keys#<shard>` sk <node name>    public keys that may sign in as the node (node-key-store.ts)
 *          pk `node-instances` sk <instance id>     EC2 instances that have enrolled
 *          pk `bootstrap-tokens` sk <id>            permissions to enrol (bootstrap-token-store.ts)
 *          pk `probe-keys` sk `-`                   public keys of node-monitor's processes (process-key-store.ts)
 *          pk `ticket-keys` sk <key id>             a public key of one of the API's processes, TTL
 *          pk `watch-slots` sk <slot, 4 digits>     a held watch, until when, TTL (watch-slot-store.ts)
 *                           sk `form`, `probe`       how streams are padded, and who measures it (stream-form-store.ts)
 *          pk `log-requests` sk `<node>#<id>`       a request for the log of a container, TTL (log-request-store.ts)
 *          pk `log-chunks#<id>` sk <sequence>       output that answers it, deleted when read, TTL
 *          pk `volume-work#<node>` sk `provision#…`, `remove#…`   volumes that its agent makes (volume-work-store.ts)
 *          pk `cidr#<cluster CIDR>#<mask>` sk `b#<block>` and the like   blocks assigned to Nodes (cidr-store.ts)
 *          pk `cloud` sk <node name>                the instance check of a node (watch-list-store.ts)
 *          pk `replica` sk `-`                      of a copy: which cluster, and how far (server/hub/replica-store.ts)
 *          pk `history` sk `-`                      of a store that was restored: which backup (store-history.ts)
 *          pk `move` sk `source`, `destination`     a move from or into this store (move-rows.ts)
 *          pk `cloud-asked` sk `-`                  when EC2 was last asked, by groups of nodes (watch-list-store.ts)
 *
 * Keys of health and objects are built here; those of control in the store that uses them.
 */

import { textHash } from '../text.ts';
import type { ItemKey, TableName } from './item-store.ts';

/** Time to live, in epoch seconds. Only for cleanup: no logic relies on a deletion. */
export const TTL_ATTRIBUTE = 'ttl';

/** What a table of DynamoDB has besides its keys. No function reacts to changes of `control`. */
export const TABLE_FEATURES: Readonly<Record<TableName, { readonly hasStream: boolean; readonly hasExpiry: boolean }>> =
  {
    health: { hasStream: true, hasExpiry: false },
    objects: { hasStream: true, hasExpiry: true },
    control: { hasStream: false, hasExpiry: true },
  };

/** Digits of a resourceVersion in a sort key. Number.MAX_SAFE_INTEGER has sixteen. */
const RESOURCE_VERSION_DIGITS = 16;

/** How long a watch can resume from the change log. Seconds; after that it receives 410 Expired. */
export const LOG_RETENTION_SECONDS = 3_600;

/** resourceVersions per millisecond: a version is milliseconds and a counter of three digits. */
export const RESOURCE_VERSIONS_PER_MS = 1_000;

/**
 * Shards of the health table: 100,000 heartbeats in 10 s are 39 writes per second and shard. A partition accepts 1,000
 * and holds several shards, so a shard must be a small part of that (docs/decisions/0024-health-shards.md).
 */
const HEALTH_SHARDS = 256;

/** Changing it moves every key. */
export const shardOf = (name: string, shards: number): number => textHash(name) % shards;

const twoDigits = (value: number): string => String(value).padStart(2, '0');

const shardText = (shard: number | undefined): string => (shard === undefined ? '' : twoDigits(shard));

export const healthPartition = (shard: number): string => `s${twoDigits(shard)}`;
const healthPartitionOf = (nodeName: string): string => healthPartition(shardOf(nodeName, HEALTH_SHARDS));
/** The row of a node (shared/fleet/nodes/health.ts). */
export const healthKey = (nodeName: string): ItemKey => ({
  table: 'health',
  pk: healthPartitionOf(nodeName),
  sk: nodeName,
});
export const healthPartitions = (): readonly string[] =>
  Array.from({ length: HEALTH_SHARDS }, (_, shard) => healthPartition(shard));

/** Without a shard: what all of its keys begin with. */
export const objectPartition = (resource: string, shard?: number): string => `o#${resource}#${shardText(shard)}`;
export const logPartition = (resource: string, shard?: number): string => `l#${resource}#${shardText(shard)}`;
/** The resource that this partition has changes of; undefined for any other partition. */
export const loggedResource = (partition: string): string | undefined =>
  partition.startsWith('l#') ? partition.slice(2, partition.lastIndexOf('#')) : undefined;
/** The resource that this partition has objects of; undefined for any other partition. */
export const storedResource = (partition: string): string | undefined =>
  partition.startsWith('o#') ? partition.slice(2, partition.lastIndexOf('#')) : undefined;
export const headPartition = (resource: string, shard: number): string => `h#${resource}#${twoDigits(shard)}`;
export const nodePodsPartition = (nodeName: string): string => `n#${nodeName}`;
export const sectionPartition = (owner: string): string => `p#${owner}`;
export const definitionNamesPartition = (group: string): string => `dn#${group}`;
export const ownedPartition = (ownerUid: string): string => `w#${ownerUid}`;
export const decisionPartition = (shard?: number): string => `d#${shardText(shard)}`;
export const decisionsPartition = (shard?: number): string => `ds#${shardText(shard)}`;
export const podDecisionsPartition = (shard?: number): string => `dp#${shardText(shard)}`;

export const objectSortKey = (namespace: string, name: string): string =>
  namespace === '' ? name : `${namespace}/${name}`;

export const resourceVersionKey = (resourceVersion: number): string =>
  String(resourceVersion).padStart(RESOURCE_VERSION_DIGITS, '0');

/** Partitions of rows that start a retry of a parked row. */
export const RETRY_PREFIX = 'r#';

/** Sort key of items that are alone in their partition. */
export const ALONE = '-';
