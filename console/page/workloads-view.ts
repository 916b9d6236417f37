/** Workloads of all kinds that act, and one of them with the reason of its state. */
import { h, type JSX } from 'preact';
import { type Address, addressOf } from '../model/address.ts';
import { countOf } from '../model/counts.ts';
import { matches, ordered, wordsOf } from '../model/rows.ts';
import { isShown, WORKLOAD_COLUMNS, WORKLOADS, type WorkloadRow, workloadRowOf } from '../model/workloads.ts';
import { messageOf } from './cluster-feed.ts';
import { Age, awaited, Failure } from './elements.ts';
import { readPages } from './requests.ts';
import { setQuery } from './use-address.ts';
import { usePoll } from './use-poll.ts';
import { FilterInput, VirtualTable } from './virtual-table.ts';
import { Why } from './why.ts';

const POLL_MS = 15_000;
const PAGES_MAX = 10;

export function WorkloadsView({ address }: { readonly address: Address }): JSX.Element {
  const { value, failure } = usePoll('workloads', POLL_MS, read);
  const filter = address.query.get('q') ?? '';
  const sort = address.query.get('sort') ?? '';
  const words = wordsOf(filter);
  const rows = (value?.rows ?? [])
    .filter(isShown)
    .filter(({ kind, namespace, name, why }) =>
      matches(words, [`${namespace}/${name}`, kind, why], (key) =>
        key === 'kind' ? kind : key === 'namespace' ? namespace : undefined,
      ),
    )
    .sort((one, other) => Number(other.isShort) - Number(one.isShort));
  return h(
    'section',
    { 'aria-labelledby': 'workloads-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'workloads-title' }, 'Workloads'),
      h('p', { role: 'status', class: 'note' }, countOf(rows.length, 'workload')),
      h(FilterInput, {
        label: 'Filter of the workloads',
        placeholder: 'text or kind=…  (/)',
        value: filter,
        set: (q) => setQuery(address, { q }),
      }),
    ),
    h(Failure, { message: failure }),
    ...(value?.failures ?? []).map((message) => h(Failure, { key: message, message })),
    h(VirtualTable<WorkloadRow>, {
      label: 'Workloads',
      columns: WORKLOAD_COLUMNS,
      rows: ordered(rows, WORKLOAD_COLUMNS, sort),
      keyOf: ({ kind, namespace, name }) => `${kind}/${namespace}/${name}`,
      cells: (row) => [
        h('a', { href: hrefOf(row) }, `${row.namespace}/${row.name}`),
        row.kind,
        h('span', { class: row.isShort ? 'worse' : '' }, row.ready),
        h(Age, { sinceMs: row.createdAtMs }),
        h('span', { title: row.why }, row.why),
      ],
      open: (row) => {
        location.hash = hrefOf(row);
      },
      sort,
      setSort: (next) => setQuery(address, { sort: next }),
      empty: value === undefined ? awaited('workloads', failure) : 'No workload matches.',
    }),
  );
}

const hrefOf = ({ kind, namespace, name }: WorkloadRow): string => addressOf('workload', kind, namespace, name);

interface Workloads {
  readonly rows: readonly WorkloadRow[];
  /** Lists that failed: the others are shown. */
  readonly failures: readonly string[];
}

async function read(): Promise<Workloads> {
  const rows: WorkloadRow[] = [];
  const failures: string[] = [];
  for (const [kind, path] of WORKLOADS) {
    try {
      await readPages<Parameters<typeof workloadRowOf>[1]>(
        path,
        {},
        { pagesMax: PAGES_MAX, onPage: (items) => rows.push(...items.map((item) => workloadRowOf(kind, item))) },
      );
    } catch (error) {
      failures.push(`${kind}: ${messageOf(error)}`);
    }
  }
  return { rows, failures };
}

interface WorkloadProps {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export const WorkloadView = ({ kind, namespace, name }: WorkloadProps): JSX.Element =>
  h(
    'section',
    { 'aria-labelledby': 'workload-title' },
    h('h2', { id: 'workload-title' }, `${kind} ${namespace}/${name}`),
    h('p', null, h('a', { href: addressOf('workloads') }, '← Workloads')),
    h(Why, { subject: `${kind}/${namespace}/${name}`, title: 'Why is it in this state?' }),
  );
