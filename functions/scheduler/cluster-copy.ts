/**
 * The copy of the cluster that a process keeps between passes. A pass reads only what changed since the last one.
 *
 * The copy may be late at any time; correctness is in the conditions of each binding (bind.ts). They need one property:
 * when the process knows a version of a node's use, or of the order of bindings, the copy has every pod that was bound
 * up to that version. So versions are read before the changes of pods, never after.
 *
 * Cost: a read unit per shard of Nodes and pods (16) and what changed. A new process lists all Nodes and pods.
 */

import { defined } from '../../shared/defined.ts';
import { readNodeUses } from '../../shared/fleet/nodes/node-use.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { withLocalClass } from '../../shared/kinds/storageclasses/local-class.ts';
import type {
  KubeObject,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubePod,
  KubeStorageClass,
} from '../../shared/kinds/types.ts';
import type { QueueStore } from '../../shared/scheduling/queue-store.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { Labels } from '../../shared/scheduling/terms.rule.ts';
import {
  isPending,
  type SchedulableNode,
  type SchedulablePod,
  schedulableNode,
  schedulablePod,
} from '../../shared/scheduling/world.rule.ts';
import { objectSortKey } from '../../shared/store/layout.ts';
import { type ObjectCopy, objectCopy } from '../../shared/store/object-copy.ts';
import { readShardChanges, readShardCursors, type ShardCursors } from '../../shared/store/shard-changes.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { ChangeHistory } from './change-history.ts';
import type { StoredVolumes } from './volumes.rule.ts';

const LIST_PAGE = 1_000;
/** 10 million objects. */
const LIST_PAGES_MAX = 10_000;
const RESOURCES = ['namespaces', 'nodes', 'pods'] as const;
type Resource = (typeof RESOURCES)[number];

type Dependencies = Pick<WorkDependencies, 'items' | 'clock' | 'objects' | 'log' | 'random'>;

export class ClusterCopy {
  readonly #dependencies: Dependencies;
  readonly #queue: QueueStore;
  snapshot = new Snapshot();
  #process: string | undefined;
  #cursors: Readonly<Record<Resource, ShardCursors>> | undefined;
  /** The snapshot has this map: a copy for each of thousands would cost their square. */
  #namespaces = new Map<string, Labels>();
  #uses = new Map<string, number>();
  #hasReadVersions = false;
  #order = 0;
  #pending = new Map<string, KubePod>();
  readonly #claims: ObjectCopy<KubePersistentVolumeClaim>;
  readonly #volumes: ObjectCopy<KubePersistentVolume>;
  readonly #classes: ObjectCopy<KubeStorageClass>;
  /** As read last; empty before a pod with claims waited. */
  #lists: readonly (readonly KubeObject[])[] = [];
  #stored: StoredVolumes = { claims: new Map(), volumes: new Map(), classes: new Map() };
  /** For waiting pods. */
  readonly history = new ChangeHistory();

  constructor(dependencies: Dependencies, queue: QueueStore) {
    this.#dependencies = dependencies;
    this.#queue = queue;
    const copyOf = <Kind extends KubeObject>(resource: string): ObjectCopy<Kind> =>
      objectCopy({
        ...dependencies,
        resource,
        listAll: () => this.#pagesOf(resource),
        keep: (object) => object as Kind,
      });
    this.#claims = copyOf('persistentvolumeclaims');
    this.#volumes = copyOf('persistentvolumes');
    this.#classes = copyOf('storageclasses');
  }

  /** Claims, volumes and classes. Current only while a pod with claims waits. */
  get storedVolumes(): StoredVolumes {
    return this.#stored;
  }

  /** Identifies this copy in rows of waiting pods. */
  get process(): string {
    this.#process ??= this.#dependencies.random.uuid();
    return this.#process;
  }

  /** Pods without a node that wait for this scheduler, as stored, with those that are gated. */
  get pending(): ReadonlyMap<string, KubePod> {
    return this.#pending;
  }

  useOf(nodeName: string): number {
    return this.#uses.get(nodeName) ?? 0;
  }

  get order(): number {
    return this.#order;
  }

  /** Rows of nodes that do not exist, once after each read of versions. */
  unusedRows(): readonly { readonly nodeName: string; readonly version: number }[] {
    if (!this.#hasReadVersions) return [];
    this.#hasReadVersions = false;
    const { nodes } = this.snapshot;
    return [...this.#uses].flatMap(([nodeName, version]) => (nodes.has(nodeName) ? [] : [{ nodeName, version }]));
  }

  rowDropped(nodeName: string): void {
    this.#uses.delete(nodeName);
  }

  /** Whether a pod changed since the last read. Maybe late; half a read unit per shard of pods. */
  async hasNewPods(): Promise<boolean> {
    const known = this.#cursors?.pods.versions;
    if (known === undefined) return true;
    const { versions } = await readShardCursors({ ...this.#dependencies, shardsOf }, 'pods', { consistent: false });
    return versions.some((version, shard) => version > (known[shard] ?? 0));
  }

  /**
   * Reads what changed. `versions`: also those of nodes and of the order, after a binding was refused or has no known
   * outcome.
   */
  async refresh({ versions = false } = {}): Promise<void> {
    await this.#refreshCluster(versions);
    if ([...this.#pending.keys()].some((key) => (this.snapshot.pods.get(key)?.claims.length ?? 0) > 0)) {
      await this.#refreshVolumes();
    }
  }

  /** Three read units, and what changed. */
  async #refreshVolumes(): Promise<void> {
    const [claims, volumes, stored] = await Promise.all([
      this.#claims.read(),
      this.#volumes.read(),
      this.#classes.read(),
    ]);
    const lists = [claims, volumes, stored];
    if (lists.every((list, index) => list === this.#lists[index])) return;
    this.#lists = lists;
    const byName = <Kind extends KubeObject>(list: readonly Kind[]): ReadonlyMap<string, Kind> =>
      new Map(list.map((each) => [objectSortKey(each.metadata.namespace ?? '', each.metadata.name ?? ''), each]));
    const classes = withLocalClass(stored);
    this.#stored = { claims: byName(claims), volumes: byName(volumes), classes: byName(classes) };
    this.history.add({ kind: 'volumes' });
  }

  async #refreshCluster(versions: boolean): Promise<void> {
    const before = this.#cursors;
    if (before === undefined) return this.#list();
    // Before the changes: see above.
    if (versions) await this.#readVersions();
    const cursors: Record<string, ShardCursors> = {};
    for (const resource of RESOURCES) {
      const options = { ...this.#dependencies, shardsOf };
      const read = await readShardChanges(options, resource, before[resource]);
      if (read.kind === 'expired') return this.#list();
      for (const { type, object } of read.changes) {
        if (type === 'DELETED') this.#remove(resource, object);
        else this.#set(resource, object);
      }
      cursors[resource] = read.cursors;
    }
    this.#cursors = cursors as Record<Resource, ShardCursors>;
  }

  /** A binding of this process is committed. */
  bound(pod: KubePod): void {
    this.#set('pods', pod);
  }

  /** A transaction of this process has bound pods to these nodes. */
  advanced(nodeNames: Iterable<string>): void {
    this.#order += 1;
    for (const nodeName of nodeNames) this.#uses.set(nodeName, this.useOf(nodeName) + 1);
  }

  async #readVersions(): Promise<void> {
    const [uses, order] = await Promise.all([readNodeUses(this.#dependencies.items), this.#queue.orderVersion()]);
    this.#uses = uses;
    this.#order = order;
    this.#hasReadVersions = true;
  }

  async #list(): Promise<void> {
    // A list that fails half-way is repeated.
    this.#cursors = undefined;
    this.snapshot = new Snapshot();
    this.#pending = new Map();
    this.#namespaces = new Map();
    const cursors: Record<string, ShardCursors> = {};
    for (const resource of RESOURCES) {
      // After the Nodes and before the pods: see dropUnusedRows (work.ts), and above.
      if (resource === 'pods') await this.#readVersions();
      cursors[resource] = await readShardCursors({ ...this.#dependencies, shardsOf }, resource);
      await this.#listAll(resource);
    }
    this.#cursors = cursors as Record<Resource, ShardCursors>;
    // What changed since the last read is not known.
    this.history.forget(this.#pending.keys());
  }

  async #listAll(resource: Resource): Promise<void> {
    for await (const page of this.#pages(resource)) for (const object of page) this.#set(resource, object);
  }

  async #pagesOf(resource: string): Promise<readonly KubeObject[]> {
    const all: KubeObject[] = [];
    for await (const page of this.#pages(resource)) all.push(...page);
    return all;
  }

  async *#pages(resource: string): AsyncGenerator<readonly KubeObject[]> {
    let after: string | undefined;
    for (let pages = 0; pages < LIST_PAGES_MAX; pages += 1) {
      const { objects } = this.#dependencies;
      const page = await objects.list({ resource, limit: LIST_PAGE, ...defined({ continueAfter: after }) });
      yield page.objects;
      if (page.next === undefined) return;
      after = page.next;
    }
    throw new RangeError(`a list of ${resource} did not end`);
  }

  #set(resource: Resource, object: KubeObject): void {
    const { name = '' } = object.metadata;
    switch (resource) {
      case 'namespaces':
        this.#namespaces.set(name, object.metadata.labels ?? {});
        this.snapshot.setNamespaces(this.#namespaces);
        break;
      case 'nodes': {
        const after = this.#readable(object, schedulableNode);
        if (after === undefined) this.#remove('nodes', object);
        else this.#setNode(after);
        break;
      }
      case 'pods':
        this.#setPod(object);
    }
  }

  #setNode(after: SchedulableNode): void {
    const before = this.snapshot.nodes.get(after.name)?.node;
    if (before !== undefined && before.resourceVersion >= after.resourceVersion) return;
    const isSame = before?.uid === after.uid;
    // The version may be that of an earlier row (dropUnusedRows in work.ts).
    if (!isSame) this.#uses.delete(after.name);
    this.snapshot.setNode(after);
    this.history.add({ kind: 'node', before: isSame ? before : undefined, after });
  }

  #setPod(pod: KubePod): void {
    const after = this.#readable(pod, schedulablePod) ?? unreadablePod(pod);
    const before = this.snapshot.pods.get(after.key);
    if (before !== undefined && before.resourceVersion >= after.resourceVersion) return;
    this.snapshot.setPod(after);
    if (isPending(after)) {
      this.#pending.set(after.key, pod);
      this.history.startWaiting(after.key);
    } else this.#waitsNoMore(after.key);
    if (before !== undefined && before.uid !== after.uid) {
      this.history.add({ kind: 'pod', before, after: undefined });
      this.history.add({ kind: 'pod', before: undefined, after });
    } else this.history.add({ kind: 'pod', before, after });
  }

  #remove(resource: Resource, object: KubeObject): void {
    const { namespace = '', name = '' } = object.metadata;
    const version = Number(object.metadata.resourceVersion ?? 0);
    if (resource === 'namespaces') {
      this.#namespaces.delete(name);
      this.snapshot.setNamespaces(this.#namespaces);
    } else if (resource === 'nodes') {
      const before = this.snapshot.nodes.get(name)?.node;
      if (before === undefined || before.resourceVersion > version) return;
      this.snapshot.removeNode(name);
      this.history.add({ kind: 'node', before, after: undefined });
    } else {
      const before = this.snapshot.pods.get(`${namespace}/${name}`);
      if (before === undefined || before.resourceVersion > version) return;
      this.snapshot.removePod(before.key);
      this.#waitsNoMore(before.key);
      this.history.add({ kind: 'pod', before, after: undefined });
    }
  }

  #waitsNoMore(key: string): void {
    this.#pending.delete(key);
    this.history.stopWaiting(key);
  }

  /** One object that cannot be read concerns only itself. */
  #readable<From extends KubeObject, To>(object: From, read: (object: From) => To): To | undefined {
    try {
      return read(object);
    } catch (error) {
      const { namespace, name } = object.metadata;
      this.#dependencies.log.error('the scheduler cannot read an object', {
        kind: object.kind,
        namespace,
        name,
        error,
      });
      return undefined;
    }
  }
}

/** In place of a pod that cannot be read: it is not scheduled, and no pod with requests is bound beside it. */
function unreadablePod(pod: KubePod): SchedulablePod {
  const { metadata, spec } = pod;
  const { namespace, name, uid, resourceVersion, deletionTimestamp } = metadata;
  const bare = schedulablePod({
    metadata: { ...defined({ namespace, name, uid, resourceVersion, deletionTimestamp }) },
    spec: { nodeName: String(spec?.nodeName ?? ''), schedulingGates: [{ name: 'unreadable' }] },
    status: { ...defined({ phase: pod.status?.phase }) },
  });
  const everything = Number.MAX_SAFE_INTEGER;
  return { ...bare, requests: { ...bare.requests, cpu: everything, memory: everything } };
}
