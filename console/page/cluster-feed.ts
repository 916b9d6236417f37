/** The live data of all views: Nodes by list and watch, the state of the controllers by polling. */
import type { KubeClusterStatus, KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { parseMetrics, type Samples } from '../model/metrics-text.ts';
import { byName, cellOf, type NodeCell } from '../model/node-cell.ts';
import type { Problem } from '../model/page-health.ts';
import { oldestPending, podSummaryOf } from '../model/pods.ts';
import type { PodSummary } from '../model/replacements.ts';
import { type ResourceRule, whyNodesAreReadOnly } from '../model/rights.ts';
import { clusterClock } from './clock.ts';
import { whileShown } from './page-visibility.ts';
import { API, RequestError, readObject, readPages, readText } from './requests.ts';
import { listAndWatch } from './watch.ts';

export interface ClusterView {
  readonly cluster: string;
  readonly endpoint: string;
  /** Why the user may not change Nodes; undefined when it may, or before it is known. */
  readonly readOnly: string | undefined;
  /** Changes in place: 5,000 entries are not copied for each event. In the order of names, except during a list. */
  readonly nodes: ReadonlyMap<string, NodeCell>;
  /** The first list of Nodes is complete. */
  readonly isListed: boolean;
  /** There are more Nodes than are read. */
  readonly isCut: boolean;
  readonly status: KubeClusterStatus['status'];
  readonly metrics: Samples;
  readonly oldestPendingPod: PodSummary | undefined;
  /** Pending pods that are read, if there are more. */
  readonly pendingCutAt: number | undefined;
  /** What is stale and why, by source. */
  readonly problems: ReadonlyMap<string, Problem>;
  /** When the status of the cluster was last read. Epoch milliseconds. */
  readonly goodAtMs: number | undefined;
}

export interface ClusterFeed {
  view(): ClusterView;
  /** Grows with every change of the view. */
  version(): number;
  subscribe(onChange: () => void): () => void;
}

const STATUS_MS = 5_000;
const METRICS_MS = 10_000;
const PENDING_MS = 15_000;
/** A view that changes with each event of a failing zone would occupy the page. */
const NOTIFY_MS = 200;
const NODE_PAGES_MAX = 40;

export function startClusterFeed(): ClusterFeed {
  let view: ClusterView = {
    cluster: '',
    endpoint: '',
    readOnly: undefined,
    nodes: new Map(),
    isListed: false,
    isCut: false,
    status: undefined,
    metrics: new Map(),
    oldestPendingPod: undefined,
    pendingCutAt: undefined,
    problems: new Map(),
    goodAtMs: undefined,
  };
  let version = 0;
  let isNotifying = false;
  const listeners = new Set<() => void>();
  const change = (part: Partial<ClusterView>): void => {
    view = { ...view, ...part };
    version += 1;
    if (isNotifying) return;
    isNotifying = true;
    setTimeout(() => {
      isNotifying = false;
      for (const listener of listeners) listener();
    }, NOTIFY_MS);
  };
  const report = (source: string, error: unknown): void => {
    if (error === undefined && !view.problems.has(source)) return;
    const problems = new Map(view.problems);
    if (error === undefined) problems.delete(source);
    else problems.set(source, problemOf(error, problems.get(source)?.sinceMs ?? clusterClock.nowMs()));
    change({ problems });
  };

  whileShown((signal) => {
    void readCluster(change, report);
    void listAndWatch(
      nodeTarget(() => view, change, report),
      signal,
    );
    for (const [source, periodMs, read] of pollsOf(change)) poll(source, periodMs, read, report, signal);
  });
  return {
    view: () => view,
    version: () => version,
    subscribe(onChange) {
      listeners.add(onChange);
      return () => listeners.delete(onChange);
    },
  };
}

type Change = (part: Partial<ClusterView>) => void;
/** `error`: undefined when the source was read. */
type Report = (source: string, error: unknown) => void;

const problemOf = (error: unknown, sinceMs: number): Problem => ({
  message: messageOf(error),
  status: error instanceof RequestError ? error.status : 0,
  isOfApi: error instanceof RequestError && error.isOfApi,
  sinceMs,
});

async function readCluster(change: Change, report: Report): Promise<void> {
  try {
    const { cluster, endpoint, rules } = await readObject<{
      cluster: string;
      endpoint: string;
      rules: readonly ResourceRule[];
    }>('/cluster');
    change({ cluster, endpoint, readOnly: whyNodesAreReadOnly(rules) });
    report('The cluster', undefined);
  } catch (error) {
    report('The cluster', error);
  }
}

function nodeTarget(view: () => ClusterView, change: Change, report: Report) {
  let nodes = new Map<string, NodeCell>();
  const inOrder = (): Map<string, NodeCell> =>
    new Map([...nodes.values()].sort(byName).map((cell) => [cell.name, cell]));
  return {
    path: '/api/v1/nodes',
    pagesMax: NODE_PAGES_MAX,
    onListStart() {
      nodes = new Map();
    },
    onListPage(items: readonly KubeNode[]) {
      for (const node of items) {
        const cell = cellOf(node);
        nodes.set(cell.name, cell);
      }
      // The first list shows what it has. A later one replaces the nodes at its end, so none disappears meanwhile.
      if (!view().isListed) change({ nodes });
    },
    onListEnd(isCut: boolean) {
      nodes = inOrder();
      change({ nodes, isListed: true, isCut });
    },
    onChange(type: string, node: KubeNode) {
      const cell = cellOf(node);
      const isNew = !nodes.has(cell.name);
      if (type === 'DELETED') nodes.delete(cell.name);
      else nodes.set(cell.name, cell);
      if (isNew) nodes = inOrder();
      change({ nodes });
    },
    onState: (problem: unknown) => report('Nodes', problem),
  };
}

type Poll = readonly [source: string, periodMs: number, read: () => Promise<void>];

const pollsOf = (change: Change): readonly Poll[] => [
  [
    'The status of the cluster',
    STATUS_MS,
    async () => {
      const { status } = await readObject<KubeClusterStatus>(
        `${API}/apis/nodekeeper.dev/v1alpha1/clusterstatuses/cluster`,
      );
      change({ status, goodAtMs: clusterClock.nowMs() });
    },
  ],
  [
    'The state of the zones',
    METRICS_MS,
    async () => change({ metrics: parseMetrics(await readText(`${API}/metrics?scope=controller`)) }),
  ],
  [
    'Pending pods',
    PENDING_MS,
    async () => {
      const pending: PodSummary[] = [];
      let pendingCutAt: number | undefined;
      await readPages<KubePod>(
        '/api/v1/pods',
        { fieldSelector: 'spec.nodeName=,status.phase=Pending' },
        {
          pagesMax: 4,
          onPage: (items) => pending.push(...items.map(podSummaryOf)),
          onCut: () => {
            pendingCutAt = pending.length;
          },
        },
      );
      change({ oldestPendingPod: oldestPending(pending), pendingCutAt });
    },
  ],
];

/** Starts `read` again one period after its end, so slow responses never pile up. */
function poll(source: string, periodMs: number, read: () => Promise<void>, report: Report, signal: AbortSignal): void {
  const run = async (): Promise<void> => {
    if (signal.aborted) return;
    try {
      await read();
      report(source, undefined);
    } catch (error) {
      report(source, error);
    }
    if (!signal.aborted) setTimeout(run, periodMs);
  };
  void run();
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
