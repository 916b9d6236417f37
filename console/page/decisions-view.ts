/** The live table of decisions. */
import { h, type JSX } from 'preact';
import { useState } from 'preact/hooks';
import { DECISION_ACTS } from '../../shared/decisions/decision-record.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import {
  DECISION_COLUMNS,
  decisionRows,
  type NamedDecision,
  readClusterDecisions,
  readDecisions,
} from './decisions.ts';
import { Choice, Failure, type Option, Table } from './elements.ts';
import { usePoll } from './use-poll.ts';

const POLL_MS = 5_000;
/** Reading the decisions of all objects reads every record of the last 30 days. */
const POLL_ALL_MS = 30_000;
const ROWS_MAX = 300;

/** Hours. */
const SPANS: readonly (readonly [hours: number, text: string])[] = [
  [1, 'last hour'],
  [24, 'last 24 hours'],
  [168, 'last 7 days'],
];
const HOUR_MS = 3_600_000;

interface Filter {
  readonly about: 'cluster' | 'node' | 'pod' | 'all';
  readonly name: string;
  readonly act: string;
  readonly zone: string;
  readonly hours: number;
}

async function read({ about, name, hours, zone }: Filter, zones: readonly string[]): Promise<readonly NamedDecision[]> {
  const sinceMs = clusterClock.nowMs() - hours * HOUR_MS;
  if (about === 'all') return await readDecisions('', sinceMs);
  if (about !== 'cluster') return name === '' ? [] : await readDecisions(`${about}=${name}`, sinceMs);
  return await readClusterDecisions(zone === '' ? zones : [zone], sinceMs);
}

export function DecisionsView({ view }: { readonly view: ClusterView }): JSX.Element {
  const [filter, setFilter] = useState<Filter>({ about: 'cluster', name: '', act: '', zone: '', hours: 24 });
  const zones = [...new Set([...view.nodes.values()].map(({ zone }) => zone))].sort();
  const key = JSON.stringify([filter.about, filter.name, filter.zone, filter.hours, zones]);
  const periodMs = filter.about === 'all' ? POLL_ALL_MS : POLL_MS;
  const { value, failure } = usePoll(key, periodMs, () => read(filter, zones));
  const matching = (value ?? []).filter(({ record }) => filter.act === '' || record.act === filter.act);
  const set = (part: Partial<Filter>): void => setFilter((last) => ({ ...last, ...part }));
  return h(
    'section',
    { 'aria-labelledby': 'decisions-title' },
    h('h2', { id: 'decisions-title' }, 'Decisions'),
    h(FilterForm, { filter, zones, set }),
    h(Failure, { message: failure }),
    matching.length > ROWS_MAX
      ? h('p', { class: 'note' }, `The newest ${ROWS_MAX} of ${matching.length} decisions are shown.`)
      : null,
    value === undefined
      ? h('p', { class: 'empty' }, 'The decisions are being read…')
      : h(Table, {
          caption: 'Decisions',
          columns: DECISION_COLUMNS,
          rows: decisionRows(matching.slice(0, ROWS_MAX)),
          empty: 'No decision matches.',
        }),
  );
}

interface FormProps {
  readonly filter: Filter;
  readonly zones: readonly string[];
  readonly set: (part: Partial<Filter>) => void;
}

const ABOUT: readonly Option[] = [
  ['cluster', 'cluster and zones'],
  ['node', 'a node'],
  ['pod', 'a pod'],
  ['all', 'all objects (slow)'],
];

const FilterForm = ({ filter, zones, set }: FormProps): JSX.Element =>
  h(
    'form',
    { class: 'filter', onSubmit: (event: Event) => event.preventDefault() },
    h(Choice, {
      label: 'About',
      value: filter.about,
      options: ABOUT,
      onChoose: (about) => set({ about: about as Filter['about'], name: '' }),
    }),
    filter.about === 'node' || filter.about === 'pod'
      ? h(
          'label',
          null,
          filter.about === 'node' ? 'Name ' : 'Namespace/name ',
          h('input', {
            value: filter.name,
            onChange: (event: Event) => set({ name: (event.currentTarget as HTMLInputElement).value.trim() }),
          }),
        )
      : null,
    filter.about === 'cluster'
      ? h(Choice, {
          label: 'Zone',
          value: filter.zone,
          options: [['', 'all'], ...zones.filter((zone) => zone !== '').map((zone): Option => [zone, zone])],
          onChoose: (zone) => set({ zone }),
        })
      : null,
    h(Choice, {
      label: 'Decision',
      value: filter.act,
      options: [['', 'all'], ...DECISION_ACTS.map((act): Option => [act, act])],
      onChoose: (act) => set({ act }),
    }),
    h(Choice, {
      label: 'Time',
      value: String(filter.hours),
      options: SPANS.map(([hours, text]): Option => [String(hours), text]),
      onChoose: (hours) => set({ hours: Number(hours) }),
    }),
  );
