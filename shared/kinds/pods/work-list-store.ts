/**
 * The work list of pod garbage collection and volume detach: one partition of the `control` table. A tick with nothing
 * to do is one query.
 *
 *   pk `pod-gc` sk `pod#<namespace>/<name>`  a terminating or terminated pod: u uid, n node name, p phase, t 1 while
 *                                     terminating, e 1 when evicted, c creation (ms)
 *   pk `pod-gc` sk `missing#<node>`    a node name in quarantine, used by pods but without a Node: since start (ms)
 *   pk `pod-gc` sk `volumes#<node>`    a node with volumes that may be unused: touched time at which a pod with volumes
 *                                     last left it (ms), instance its last known EC2 instance, memory JSON of the state
 *                                     of each attachment
 *   pk `pod-gc` sk `sweep`             due time of the next full sweep (ms), after the pod from which it continues
 *
 * object-stream maintains the list. A periodic sweep of all pods repairs what lost records left out or behind. A row is
 * only a hint: every effect is decided again from live objects.
 */
import { defined } from '../../defined.ts';
import { nodeHealthOf } from '../../fleet/nodes/health.ts';
import { controlPages, type Item, type ItemKey, type ItemStore } from '../../store/item-store.ts';
import { healthKey, is, nodePodsPartition, objectSortKey } from '../../store/layout.ts';

const PARTITION = 'pod-gc';
const POD_PREFIX = 'pod#';
const MISSING_PREFIX = 'missing#';
const VOLUMES_PREFIX = 'volumes#';
const SWEEP = 'sweep';
/** Rows of a short list: 4 KB of them cost half a read unit. */
const SHORT_LIST_MAX = 16;

export interface ListedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Absent: not bound. */
  readonly nodeName: string | undefined;
  readonly phase: string | undefined;
  readonly terminating: boolean;
  readonly evicted: boolean;
  readonly createdAtMs: number;
}

/** State of one attachment of a node, by the name of its VolumeAttachment. */
export interface VolumeMemory {
  readonly volumeId: string;
  /** First seen unused, and unused since. */
  readonly requestedAtMs: number;
  /** When EC2 last accepted a detach request. Absent: not requested yet. */
  readonly askedAtMs?: number;
  /** The request had Force set. */
  readonly forced?: boolean;
}

export interface NodeVolumes {
  readonly nodeName: string;
  /** When a pod that names volumes last left the node, or the Node was deleted. */
  readonly touchedAtMs: number;
  readonly instanceId: string | undefined;
  readonly memory: Readonly<Record<string, VolumeMemory>>;
}

export interface SweepState {
  readonly dueAtMs: number;
  /** Sort key of the last pod read. Absent: from the beginning. */
  readonly after: string | undefined;
}

export interface PodGcList {
  readonly pods: readonly ListedPod[];
  /** Start of the quarantine by node name. Epoch milliseconds. */
  readonly missing: ReadonlyMap<string, number>;
  readonly volumes: readonly NodeVolumes[];
  /** undefined before the first sweep. */
  readonly sweep: SweepState | undefined;
}

export interface PodGcStore {
  /** The whole list, strongly consistent. */
  read(): Promise<PodGcList>;
  /** The list if it is short, otherwise undefined. Eventually consistent: half a read unit. */
  readShort(): Promise<PodGcList | undefined>;
  putPod(pod: ListedPod): Promise<void>;
  dropPod(pod: { readonly namespace: string; readonly name: string }): Promise<void>;
  /**
   * Whether a Node of this name exists, and the start of the name's quarantine (epoch milliseconds), if it has begun:
   * one strongly consistent read of both.
   */
  readNodeName(nodeName: string): Promise<{ readonly exists: boolean; readonly missingSinceMs: number | undefined }>;
  /** Begins the quarantine of a node name, unless it has begun. */
  putMissing(nodeName: string, sinceMs: number): Promise<void>;
  /** Restarts the quarantine, if it still has the start that the caller read. */
  restartMissing(nodeName: string, from: { readonly seenSinceMs: number; readonly sinceMs: number }): Promise<void>;
  /** Ends the quarantine, if it still has the start that the caller read. */
  dropMissing(nodeName: string, seenSinceMs: number): Promise<void>;
  /** A pod that names volumes left the node: its volumes are checked, and detach waits restart. */
  touchVolumes(nodeName: string, nowMs: number): Promise<void>;
  /** The Node was deleted, or its row is about to be dropped: stores its instance. */
  noteInstance(nodeName: string, instanceId: string, nowMs: number): Promise<void>;
  /** The node's volumes are checked. A detach wait that runs is not restarted. */
  askVolumes(nodeName: string, nowMs: number): Promise<void>;
  /** Refused when a pod left the node since `seen`. */
  saveVolumes(seen: NodeVolumes, next: Pick<NodeVolumes, 'instanceId' | 'memory'>): Promise<'written' | 'refused'>;
  /** Nothing is left to check. Refused when a pod left the node since `seen`. */
  dropVolumes(seen: NodeVolumes): Promise<void>;
  saveSweep(state: SweepState): Promise<void>;
  /** Whether any pod is bound to this node name, strongly consistent. */
  hasPods(nodeName: string): Promise<boolean>;
}

const keyOf = (sk: string): ItemKey => ({ table: 'control', pk: PARTITION, sk });
const podKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): ItemKey =>
  keyOf(`${POD_PREFIX}${objectSortKey(namespace, name)}`);
const missingKey = (nodeName: string): ItemKey => keyOf(`${MISSING_PREFIX}${nodeName}`);
const volumesKey = (nodeName: string): ItemKey => keyOf(`${VOLUMES_PREFIX}${nodeName}`);

export const podGcStore = (items: ItemStore): PodGcStore => ({
  read: () => readList(items),
  readShort: () => readShortList(items),
  ...podRows(items),
  ...quarantineRows(items),
  ...volumeRows(items),
  async saveSweep({ dueAtMs, after }) {
    await items.write({ kind: 'put', key: keyOf(SWEEP), item: { due: dueAtMs, ...defined({ after }) } });
  },
});

async function readList(items: ItemStore): Promise<PodGcList> {
  const rows: Item[] = [];
  const pages = controlPages(items, PARTITION, {
    consistent: true,
    tooMany: 'the work list of pod-gc exceeds the page limit of one read',
  });
  for await (const page of pages) rows.push(...page);
  return listOf(rows);
}

async function readShortList(items: ItemStore): Promise<PodGcList | undefined> {
  const page = await items.query({ table: 'control', pk: PARTITION, consistent: false, limit: SHORT_LIST_MAX });
  return page.next === undefined ? listOf(page.items) : undefined;
}

const podRows = (items: ItemStore): Pick<PodGcStore, 'putPod' | 'dropPod' | 'hasPods'> => ({
  async putPod({ uid, createdAtMs, nodeName, phase, terminating, evicted, ...path }) {
    const flags = { t: terminating ? 1 : undefined, e: evicted ? 1 : undefined };
    const item = { u: uid, c: createdAtMs, ...defined({ n: nodeName, p: phase, ...flags }) };
    await items.write({ kind: 'put', key: podKey(path), item });
  },

  async dropPod(pod) {
    await items.write({ kind: 'delete', key: podKey(pod) });
  },

  async hasPods(nodeName) {
    const page = await items.query({
      table: 'objects',
      pk: nodePodsPartition(nodeName),
      consistent: true,
      limit: 1,
    });
    return page.items.length > 0;
  },
});

const quarantineRows = (
  items: ItemStore,
): Pick<PodGcStore, 'readNodeName' | 'putMissing' | 'restartMissing' | 'dropMissing'> => ({
  async readNodeName(nodeName) {
    const [digest, row] = await items.getMany([healthKey(nodeName), missingKey(nodeName)], { consistent: true });
    return {
      exists: digest !== undefined && nodeHealthOf(digest) !== undefined,
      missingSinceMs: row?.['since'] as number | undefined,
    };
  },

  async putMissing(nodeName, sinceMs) {
    const item = { since: sinceMs };
    await items.write({ kind: 'put', key: missingKey(nodeName), item, when: { kind: 'itemAbsent' } });
  },

  async restartMissing(nodeName, { seenSinceMs, sinceMs }) {
    const item = { since: sinceMs };
    await items.write({ kind: 'put', key: missingKey(nodeName), item, when: is('since', seenSinceMs) });
  },

  async dropMissing(nodeName, seenSinceMs) {
    await items.write({ kind: 'delete', key: missingKey(nodeName), when: is('since', seenSinceMs) });
  },
});

const volumeRows = (
  items: ItemStore,
): Pick<PodGcStore, 'touchVolumes' | 'noteInstance' | 'askVolumes' | 'saveVolumes' | 'dropVolumes'> => ({
  async touchVolumes(nodeName, nowMs) {
    await items.write({ kind: 'update', key: volumesKey(nodeName), set: { touched: nowMs } });
  },

  async noteInstance(nodeName, instanceId, nowMs) {
    await items.write({
      kind: 'update',
      key: volumesKey(nodeName),
      set: { instance: instanceId },
      setIfAbsent: { touched: nowMs },
    });
  },

  async askVolumes(nodeName, nowMs) {
    await items.write({ kind: 'update', key: volumesKey(nodeName), setIfAbsent: { touched: nowMs } });
  },

  async saveVolumes(seen, { instanceId, memory }) {
    const outcome = await items.write({
      kind: 'update',
      key: volumesKey(seen.nodeName),
      set: { memory: JSON.stringify(memory), ...defined({ instance: instanceId }) },
      when: is('touched', seen.touchedAtMs),
    });
    return outcome.kind;
  },

  async dropVolumes({ nodeName, touchedAtMs }) {
    await items.write({ kind: 'delete', key: volumesKey(nodeName), when: is('touched', touchedAtMs) });
  },
});

function listOf(rows: readonly Item[]): PodGcList {
  const pods: ListedPod[] = [];
  const missing = new Map<string, number>();
  const volumes: NodeVolumes[] = [];
  let sweep: SweepState | undefined;
  for (const item of rows) {
    const sk = item['sk'] as string;
    if (sk.startsWith(POD_PREFIX)) pods.push(listedPodOf(item));
    else if (sk.startsWith(MISSING_PREFIX)) missing.set(sk.slice(MISSING_PREFIX.length), item['since'] as number);
    else if (sk.startsWith(VOLUMES_PREFIX)) volumes.push(nodeVolumesOf(item));
    else if (sk === SWEEP) sweep = { dueAtMs: item['due'] as number, after: item['after'] as string | undefined };
  }
  return { pods, missing, volumes, sweep };
}

function listedPodOf(item: Item): ListedPod {
  const path = (item['sk'] as string).slice(POD_PREFIX.length);
  const slash = path.indexOf('/');
  return {
    namespace: path.slice(0, slash),
    name: path.slice(slash + 1),
    uid: item['u'] as string,
    nodeName: item['n'] as string | undefined,
    phase: item['p'] as string | undefined,
    terminating: item['t'] === 1,
    evicted: item['e'] === 1,
    createdAtMs: item['c'] as number,
  };
}

function nodeVolumesOf(item: Item): NodeVolumes {
  const memory = item['memory'] as string | undefined;
  return {
    nodeName: (item['sk'] as string).slice(VOLUMES_PREFIX.length),
    touchedAtMs: item['touched'] as number,
    instanceId: item['instance'] as string | undefined,
    memory: memory === undefined ? {} : (JSON.parse(memory) as Record<string, VolumeMemory>),
  };
}
