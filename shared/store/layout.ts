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
 *
 * Attributes of rows. A row is described once, as a record of attributes. The type of its values, its reader, its
 * writer, its conditions and its projection follow from that record.
 */
import { textHash } from '../text.ts';
import {
  type AttributeValue,
  type Condition,
  type Item,
  type ItemKey,
  StoreFault,
  type TableName,
  type UpdateWrite,
} from './item-store.ts';

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

type Scalar = string | number | boolean | Uint8Array;

/** One attribute of a row. Two attributes may have one name, if only one of them has a value at a time. */
export interface Attribute<T> {
  readonly name: string;
  /** Its value in this row; that of an absent attribute, too. */
  of(row: Item): T;
  /** The stored form. undefined: the attribute is absent. */
  stored(value: T): Scalar | undefined;
}

/** What all attributes have in common. */
type AnyAttribute = Omit<Attribute<unknown>, 'stored'> & { stored(value: never): Scalar | undefined };
export type Attributes = Readonly<Record<string, AnyAttribute>>;

type ValueOf<A> = A extends Attribute<infer T> ? T : never;
type OptionalName<A> = { [N in keyof A]: undefined extends ValueOf<A[N]> ? N : never }[keyof A];

/** The values of a row. One that may be absent is optional. */
export type RowValues<A> = { readonly [N in Exclude<keyof A, OptionalName<A>>]: ValueOf<A[N]> } & {
  readonly [N in OptionalName<A>]?: ValueOf<A[N]>;
};

type Kind<S extends Scalar> = (value: AttributeValue | undefined) => value is S;
const isText = (value: AttributeValue | undefined): value is string => typeof value === 'string';
const isNumber = (value: AttributeValue | undefined): value is number => typeof value === 'number';
const isBytes = (value: AttributeValue | undefined): value is Uint8Array => value instanceof Uint8Array;

const plain = <S extends Scalar>(name: string, isKind: Kind<S>): Attribute<S | undefined> => ({
  name,
  of(row) {
    const value = row[name];
    return isKind(value) ? value : undefined;
  },
  stored: (value) => value,
});

export const text = (name: string): Attribute<string | undefined> => plain(name, isText);
export const number = (name: string): Attribute<number | undefined> => plain(name, isNumber);
export const bytes = (name: string): Attribute<Uint8Array | undefined> => plain(name, isBytes);

/** A text that may be stored packed (object-record.ts). */
export const packable = (name: string): Attribute<string | Uint8Array | undefined> =>
  plain(name, (value): value is string | Uint8Array => isText(value) || isBytes(value));

/** 1, or absent. */
export const flag = (name: string): Attribute<boolean> => ({
  name,
  of: (row) => row[name] !== undefined,
  stored: (value) => (value ? 1 : undefined),
});

/** A value that is stored in another form. */
export const mapped = <T, S>(
  attribute: Attribute<S>,
  form: { readonly read: (stored: S) => T; readonly write: (value: T) => S },
): Attribute<T> => ({
  name: attribute.name,
  of: (row) => form.read(attribute.of(row)),
  stored: (value) => attribute.stored(form.write(value)),
});

/** One of a few words, which only the store of this row writes. */
export const word = <W extends string>(name: string): Attribute<W | undefined> => ({
  name,
  of: (row) => row[name] as W | undefined,
  stored: (value) => value,
});

/** JSON, which only the store of this row writes. */
export const json = <T extends object>(name: string): Attribute<T | undefined> =>
  mapped(text(name), {
    read: (value) => (value === undefined ? undefined : (JSON.parse(value) as T)),
    write: (value) => (value === undefined ? undefined : JSON.stringify(value)),
  });

/** An attribute that every row of its kind has. */
export const present = <T>(attribute: Attribute<T | undefined>): Attribute<T> => ({
  name: attribute.name,
  of(row) {
    const value = attribute.of(row);
    if (value === undefined) throw new StoreFault('rejected', `a row without ${attribute.name}`, { retryable: false });
    return value;
  },
  stored: attribute.stored,
});

/** The values of a row. Absent ones are left out. */
export function readRow<A extends Attributes>(attributes: A, row: Item): RowValues<A> {
  const values: Record<string, unknown> = {};
  for (const name in attributes) {
    const value = attributes[name]!.of(row);
    if (value !== undefined) values[name] = value;
  }
  return values as RowValues<A>;
}

/** New values of some attributes of a row. undefined removes an attribute. */
export type ChangedValues<A> = { readonly [N in keyof A]?: ValueOf<A[N]> | undefined };

/** The update that sets these values. It removes attributes with the value undefined, and those that are not stored. */
export function changeOf<A extends Attributes>(
  attributes: A,
  values: ChangedValues<A>,
): Required<Pick<UpdateWrite, 'set' | 'remove'>> {
  const set: Item = {};
  const remove: string[] = [];
  for (const name in attributes) {
    if (!(name in values)) continue;
    const attribute: Attribute<unknown> = attributes[name]!;
    const stored = values[name] === undefined ? undefined : attribute.stored(values[name]);
    if (stored === undefined) remove.push(attribute.name);
    else set[attribute.name] = stored;
  }
  return { set, remove };
}

/** Names for a projection, or for a removal. */
export const namesOf = (attributes: Attributes): readonly string[] => [
  ...new Set(Object.values(attributes).map(({ name }) => name)),
];

/** Holds while a row has this value. */
export function holds<T>(attribute: Attribute<T>, value: T): Condition {
  const stored = attribute.stored(value);
  return stored === undefined ? lacks(attribute.name) : is(attribute.name, stored);
}

export const is = (attribute: string, value: string | number | boolean | Uint8Array): Condition => ({
  kind: 'compare',
  attribute,
  op: '=',
  value,
});
/** Holds while a row has no such number, or a lower one. */
export const below = ({ name }: Attribute<number | undefined>, value: number): Condition =>
  any(lacks(name), { kind: 'compare', attribute: name, op: '<', value });
/** Whether a row has the attribute. */
export const isIn =
  ({ name }: Pick<Attribute<never>, 'name'>) =>
  (row: Item): boolean =>
    row[name] !== undefined;
export const lacks = (attribute: string): Condition => ({ kind: 'lacks', attribute });
/** A single condition stays as it is. */
export const all = (...of: Condition[]): Condition => (of.length === 1 ? of[0]! : { kind: 'all', of });
export const any = (...of: Condition[]): Condition => ({ kind: 'any', of });
