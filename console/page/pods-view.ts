/** All pods as a table, and pods that were evicted with what replaced them. */
import { h, type JSX } from 'preact';
import type { KubeEvent } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { type Address, addressOf } from '../model/address.ts';
import { countOf } from '../model/counts.ts';
import { isPodTrouble, POD_COLUMNS, type PodRow, podRowsOf } from '../model/pod-rows.ts';
import { podKeyOf } from '../model/pods.ts';
import { type EvictedPod, type Replacement, replacementsOf } from '../model/replacements.ts';
import { ordered } from '../model/rows.ts';
import { readDecisions } from './decisions.ts';
import { Age, awaited, Failure, nodeLink, Table } from './elements.ts';
import { usePods } from './pods-feed.ts';
import { readPages } from './requests.ts';
import { setQuery } from './use-address.ts';
import { usePoll } from './use-poll.ts';
import { FilterInput, VirtualTable } from './virtual-table.ts';

const POLL_MS = 10_000;
const PAGES_MAX = 20;
/** More are folded: the table of all pods is below them. */
const EVICTED_OPEN_MAX = 6;
/** Each needs one query for its node. */
const EVICTED_MAX = 20;
/** The event that the taint eviction publishes for a pod that it deletes. Kept for an hour. */
const EVICTION_REASON = 'TaintManagerEviction';

interface Evicted extends EvictedPod {
  readonly fromNode: string;
}

interface PodsProps {
  readonly address: Address;
}

export function PodsView({ address }: PodsProps): JSX.Element {
  const { pods, isListed, failure: podsFailure } = usePods();
  const { value: evicted = [], failure } = usePoll('evicted', POLL_MS, readEvicted);
  const filter = address.query.get('q') ?? '';
  const sort = address.query.get('sort') ?? '';
  const rows = ordered(podRowsOf(pods.values(), filter), POD_COLUMNS, sort);
  return h(
    'section',
    { 'aria-labelledby': 'pods-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'pods-title' }, 'Pods'),
      h(
        'p',
        { role: 'status', class: 'note' },
        filter === '' ? countOf(rows.length, 'pod') : `${rows.length} of ${countOf(pods.size, 'pod')}`,
        isListed || podsFailure !== undefined ? '' : ' …',
      ),
      h(FilterInput, {
        label: 'Filter of the pods',
        placeholder: 'text, node=… or status=…  (/)',
        value: filter,
        set: (q) => setQuery(address, { q }),
      }),
    ),
    h(Failure, { message: podsFailure ?? failure }),
    evicted.length === 0
      ? null
      : h(
          'details',
          { open: evicted.length <= EVICTED_OPEN_MAX },
          h('summary', null, `Evicted in the last hour: ${countOf(evicted.length, 'pod')}`),
          h(Table, {
            caption: 'Evicted pods and their replacements',
            columns: ['Evicted', 'From', 'Ago', 'Replaced by', 'To'],
            rows: replacementsOf(evicted, [...pods.values()]).map((each) => replacementRow(each)),
            empty: '',
          }),
        ),
    h(VirtualTable<PodRow>, {
      label: 'Pods',
      columns: POD_COLUMNS,
      rows,
      keyOf: podKeyOf,
      cells: cellsOf,
      open: (pod) => {
        location.hash = addressOf('pod', pod.namespace, pod.name);
      },
      sort,
      setSort: (next) => setQuery(address, { sort: next }),
      empty: isListed ? 'No pod matches.' : awaited('pods', podsFailure),
    }),
  );
}

const podLink = (pod: Pick<PodRow, 'namespace' | 'name'>): JSX.Element =>
  h('a', { href: addressOf('pod', pod.namespace, pod.name) }, podKeyOf(pod));

const cellsOf = (pod: PodRow) => [
  podLink(pod),
  h('span', { class: isPodTrouble(pod) ? 'worse' : '', title: pod.status }, pod.status),
  pod.ready,
  String(pod.restarts),
  pod.node === '' ? '' : nodeLink(pod.node),
  h(Age, { sinceMs: pod.createdAtMs }),
  h('span', { title: pod.whyPending }, pod.whyPending),
];

function replacementRow({ evicted, by }: Replacement): readonly (JSX.Element | string)[] {
  const { fromNode } = evicted as Evicted;
  return [
    podKeyOf(evicted),
    fromNode === '' ? '' : nodeLink(fromNode),
    h(Age, { sinceMs: evicted.atMs }),
    by === undefined ? 'nothing yet' : podLink(by),
    by === undefined || by.node === '' ? '' : nodeLink(by.node),
  ];
}

async function readEvicted(): Promise<readonly Evicted[]> {
  const events: KubeEvent[] = [];
  await readPages<KubeEvent>(
    '/api/v1/events',
    { fieldSelector: `reason=${EVICTION_REASON}` },
    { pagesMax: PAGES_MAX, onPage: (items) => events.push(...items) },
  );
  const evicted = events
    .filter(({ message = '' }) => !message.startsWith('Cancelling'))
    .map(
      (event): EvictedPod => ({
        namespace: event.involvedObject?.namespace ?? '',
        name: event.involvedObject?.name ?? '',
        atMs: parseTimeMs(event.firstTimestamp ?? event.metadata.creationTimestamp) ?? 0,
      }),
    )
    .sort((one, other) => other.atMs - one.atMs)
    .slice(0, EVICTED_MAX);
  return await Promise.all(evicted.map(withNode));
}

/** The node of a decision never changes, so it is read once. */
const fromNodes = new Map<string, string>();

async function withNode(pod: EvictedPod): Promise<Evicted> {
  const key = `${podKeyOf(pod)} ${pod.atMs}`;
  let fromNode = fromNodes.get(key);
  if (fromNode === undefined) {
    const decisions = await readDecisions(`pod=${podKeyOf(pod)}`, 0);
    const deleted = decisions.find(({ record }) => record.act === 'PodDeleted')?.record;
    const inputs = deleted?.inputs as { readonly nodeName?: string } | undefined;
    fromNode = inputs?.nodeName ?? '';
    fromNodes.set(key, fromNode);
  }
  return { ...pod, fromNode };
}
