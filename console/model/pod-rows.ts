/** The list of pods: READY, STATUS and RESTARTS are those that kubectl prints. */
import { summarisePod } from '../../shared/kinds/pods/row.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { requestsOf } from '../../shared/scheduling/requests.rule.ts';
import { podSummaryOf } from './pods.ts';
import type { PodSummary } from './replacements.ts';
import { type Column, matches, wordsOf } from './rows.ts';

export interface PodRow extends PodSummary {
  readonly ready: string;
  readonly status: string;
  readonly restarts: number;
  /** Requests: millicores, bytes. */
  readonly cpu: number;
  readonly memory: number;
}

/** `nowMs` is in no number that is kept. */
export function podRowOf(pod: KubePod, nowMs: number): PodRow {
  const { ready, status, restarts } = summarisePod(pod, nowMs);
  const { cpu, memory } = requestsOf(pod);
  return { ...podSummaryOf(pod), ready, status, restarts: Number.parseInt(restarts, 10), cpu, memory };
}

const GOOD: ReadonlySet<string> = new Set(['Running', 'Completed', 'Succeeded']);

/** Neither running with all its containers nor finished. */
export const isPodTrouble = ({ status, ready }: Pick<PodRow, 'status' | 'ready'>): boolean => {
  const [up, of] = ready.split('/');
  return !GOOD.has(status) || (status === 'Running' && up !== of);
};

/** Trouble first, then by name. */
export function podRowsOf(pods: Iterable<PodRow>, filter: string): readonly PodRow[] {
  const words = wordsOf(filter);
  const texts = ({ namespace, name, status, node, owner, whyPending }: PodRow): readonly string[] => [
    `${namespace}/${name}`,
    status,
    node,
    owner,
    whyPending,
  ];
  const trouble: PodRow[] = [];
  const others: PodRow[] = [];
  for (const pod of pods) {
    if (!matches(words, texts(pod), (key) => valueOfKey(pod, key))) continue;
    (isPodTrouble(pod) ? trouble : others).push(pod);
  }
  return [...trouble, ...others];
}

function valueOfKey({ namespace, node, status, phase, owner }: PodRow, key: string): string | undefined {
  return new Map([
    ['namespace', namespace],
    ['node', node],
    ['status', status],
    ['phase', phase],
    ['owner', owner],
  ]).get(key);
}

export const POD_COLUMNS: readonly Column<PodRow>[] = [
  { key: 'name', title: 'Pod', by: ({ namespace, name }) => `${namespace}/${name}` },
  { key: 'status', title: 'Status', by: ({ status }) => status },
  { key: 'ready', title: 'Ready', by: ({ ready }) => ready },
  { key: 'restarts', title: 'Restarts', by: ({ restarts }) => restarts },
  { key: 'node', title: 'Node', by: ({ node }) => node },
  { key: 'age', title: 'Age', by: ({ createdAtMs }) => -createdAtMs },
  { key: 'why', title: 'Why pending', by: ({ whyPending }) => whyPending },
];
