/** The list of nodes: what each has, in the order of trouble. */
import type { KubeClusterStatus } from '../../shared/kinds/types.ts';
import type { NodeCell } from './node-cell.ts';
import type { PodRow } from './pod-rows.ts';
import { type Column, compareTexts, matches, wordsOf } from './rows.ts';
import { heartbeatsOf } from './situation.ts';

/** What the pods of a node request. */
export interface Allocated {
  readonly pods: number;
  /** Millicores. */
  readonly cpu: number;
  /** Bytes. */
  readonly memory: number;
}

export interface NodeRow {
  readonly cell: NodeCell;
  /** Milliseconds from its last heartbeat to when that was read, or to now while it is silent. */
  readonly silentMs: number | undefined;
  /** Share of its grace period that has passed, 0 to 1. */
  readonly graceShare: number | undefined;
  /** undefined: the pods are not known. */
  readonly allocated: Allocated | undefined;
}

export interface NodeRowsInput {
  readonly nodes: Iterable<NodeCell>;
  readonly status: KubeClusterStatus['status'];
  readonly renewedAtMs: (node: string) => number | undefined;
  /** When that was read: the age of a heartbeat is that of then, because a later one is not known. */
  readonly heartbeatsReadAtMs: number | undefined;
  readonly allocated: ReadonlyMap<string, Allocated> | undefined;
  readonly filter: string;
  readonly nowMs: number;
}

const NOTHING: Allocated = Object.freeze({ pods: 0, cpu: 0, memory: 0 });

/** Pods that have not ended, as `kubectl describe node` counts them. */
export function allocatedByNode(pods: Iterable<PodRow>): ReadonlyMap<string, Allocated> {
  const found = new Map<string, { pods: number; cpu: number; memory: number }>();
  for (const { node, phase, cpu, memory } of pods) {
    if (node === '' || phase === 'Succeeded' || phase === 'Failed') continue;
    const sums = found.get(node) ?? { pods: 0, cpu: 0, memory: 0 };
    sums.pods += 1;
    sums.cpu += cpu;
    sums.memory += memory;
    found.set(node, sums);
  }
  return found;
}

export function nodeRowsOf(input: NodeRowsInput): readonly NodeRow[] {
  const { nodes, status, renewedAtMs, heartbeatsReadAtMs = input.nowMs, allocated, filter, nowMs } = input;
  const words = wordsOf(filter);
  const rows: NodeRow[] = [];
  for (const cell of nodes) {
    if (!matches(words, textsOf(cell), (key) => valueOfKey(cell, key))) continue;
    const renewedMs = renewedAtMs(cell.name);
    const atMs = cell.state === 'Unknown' ? nowMs : heartbeatsReadAtMs;
    const silentMs = renewedMs === undefined ? undefined : Math.max(0, atMs - renewedMs);
    const grace = heartbeatsOf(status, cell.profile)?.graceSeconds;
    rows.push({
      cell,
      silentMs,
      graceShare: silentMs === undefined || grace === undefined ? undefined : Math.min(1, silentMs / (grace * 1_000)),
      allocated: allocated === undefined ? undefined : (allocated.get(cell.name) ?? NOTHING),
    });
  }
  return rows.sort(
    (one, other) => rankOf(one.cell) - rankOf(other.cell) || compareTexts(one.cell.name, other.cell.name),
  );
}

/** The words that describe a node beside its name. */
export const flagsOf = (cell: NodeCell): readonly string[] => [
  ...(cell.state === 'Unknown' ? ['silent'] : []),
  ...(cell.isEvicting ? ['tainted'] : []),
  ...(cell.plannedSilence === undefined ? [] : ['planned silence']),
  ...(cell.isFlapping ? ['flapping'] : []),
];

const textsOf = (cell: NodeCell): readonly string[] => [
  cell.name,
  cell.status,
  cell.zone,
  cell.version,
  ...cell.taints,
  ...flagsOf(cell),
];

function valueOfKey(cell: NodeCell, key: string): string | undefined {
  if (key === 'zone') return cell.zone;
  if (key === 'status') return cell.status;
  if (key === 'version') return cell.version;
  if (key === 'profile') return cell.profile ?? 'default';
  const label = Object.keys(cell.labels).find((each) => each.toLowerCase() === key);
  return label === undefined ? undefined : cell.labels[label];
}

/** Trouble first. */
function rankOf({ state, plannedSilence, isFlapping, isCordoned }: NodeCell): number {
  if (plannedSilence !== undefined) return 3;
  if (state === 'Unknown') return 0;
  if (state === 'NotReady') return 1;
  return isFlapping ? 2 : isCordoned ? 4 : 5;
}

export const shareOf = (used: number | undefined, of: number): number =>
  used === undefined || of <= 0 ? 0 : Math.min(1, used / of);

export const NODE_COLUMNS: readonly Column<NodeRow>[] = [
  { key: 'name', title: 'Name', by: ({ cell }) => cell.name },
  { key: 'status', title: 'Status', by: ({ cell }) => cell.status },
  { key: 'heartbeat', title: 'Heartbeat', by: ({ silentMs }) => silentMs ?? Number.MAX_SAFE_INTEGER },
  { key: 'zone', title: 'Zone', by: ({ cell }) => cell.zone },
  { key: 'pods', title: 'Pods', by: ({ allocated }) => allocated?.pods ?? -1 },
  { key: 'cpu', title: 'CPU', by: ({ cell, allocated }) => shareOf(allocated?.cpu, cell.allocatable.cpu) },
  { key: 'memory', title: 'Memory', by: ({ cell, allocated }) => shareOf(allocated?.memory, cell.allocatable.memory) },
  { key: 'age', title: 'Age', by: ({ cell }) => -(cell.createdAtMs ?? 0) },
  { key: 'version', title: 'Version', by: ({ cell }) => cell.version },
  { key: 'taints', title: 'Taints', by: ({ cell }) => cell.taints.length },
];

const GIB = 2 ** 30;

/** "1.5 of 4", in cores; "1.5" for a node that reports none. */
export const cpuText = (used: number, of: number): string =>
  of <= 0 ? trimmed(used / 1_000) : `${trimmed(used / 1_000)} of ${trimmed(of / 1_000)}`;

/** "0.5 of 7.2 Gi". */
export const memoryText = (used: number, of: number): string =>
  `${trimmed(used / GIB)}${of <= 0 ? '' : ` of ${trimmed(of / GIB)}`} Gi`;

const trimmed = (value: number): string => String(Number(value.toFixed(value < 1 ? 2 : 1)));
