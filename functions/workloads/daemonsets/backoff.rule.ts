/**
 * How long a node waits between two deletions of failed pods of one DaemonSet: 1 s, doubled up to 15 minutes. It is
 * stored with the claim of the DaemonSet, in the transaction that deletes the pods. Source:
 * pkg/controller/daemon/daemon_controller.go (failedPodsBackoff), client-go util/flowcontrol/backoff.go.
 */

const INITIAL_MS = 1_000;
const MAX_MS = 900_000;
/** Nodes that are stored: those that failed last. */
const NODES_MAX = 500;

export interface Backoff {
  /** When the last failed pod was deleted. Epoch milliseconds. */
  readonly atMs: number;
  readonly delayMs: number;
}

export interface Backoffs {
  /** The generation of the DaemonSet. Another generation starts anew. */
  readonly generation: number;
  readonly nodes: Readonly<Record<string, Backoff>>;
}

const NONE: Backoff = { atMs: 0, delayMs: 0 };

export const backoffOf = ({ nodes }: Backoffs, name: string): Backoff =>
  Object.hasOwn(nodes, name) ? (nodes[name] ?? NONE) : NONE;

export const isWaiting = ({ atMs, delayMs }: Backoff, nowMs: number): boolean => nowMs - atMs < delayMs;

/** Forgotten after twice the longest wait. */
const isForgotten = ({ atMs }: Backoff, nowMs: number): boolean => nowMs - atMs > 2 * MAX_MS;

export function withFailure({ generation, nodes }: Backoffs, name: string, nowMs: number): Backoffs {
  const last = backoffOf({ generation, nodes }, name);
  const isFirst = last.delayMs === 0 || isForgotten(last, nowMs);
  const delayMs = isFirst ? INITIAL_MS : Math.min(last.delayMs * 2, MAX_MS);
  const kept = Object.entries(nodes)
    .filter(([each, backoff]) => each !== name && !isForgotten(backoff, nowMs))
    .sort(([, left], [, right]) => right.atMs - left.atMs)
    .slice(0, NODES_MAX - 1);
  return { generation, nodes: Object.fromEntries([...kept, [name, { atMs: nowMs, delayMs }]]) };
}

/** The attribute in the row of the claim, under `b`: the generation, then [node, time, wait] for each. */
export const backoffsRow = ({ generation, nodes }: Backoffs) => ({
  b: [generation, ...Object.entries(nodes).map(([name, { atMs, delayMs }]) => [name, atMs, delayMs])],
});

export function backoffsOfRow(row: Readonly<Record<string, unknown>>, generation: number): Backoffs {
  const [stored, ...entries] = Array.isArray(row['b']) ? (row['b'] as readonly unknown[]) : [];
  if (stored !== generation) return { generation, nodes: {} };
  const nodes = entries.flatMap((entry): [string, Backoff][] => {
    const [name, atMs, delayMs] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
    return typeof name === 'string' ? [[name, { atMs: Number(atMs), delayMs: Number(delayMs) }]] : [];
  });
  return { generation, nodes: Object.fromEntries(nodes) };
}
