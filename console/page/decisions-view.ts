/** The live table of decisions. */
import { h, type JSX } from 'preact';
import { DECISION_ACTS } from '../../shared/decisions/decision-record.ts';
import type { Address } from '../model/address.ts';
import { DECISION_SPANS, type DecisionFilter, decisionFilterOf, queryOfDecisions } from '../model/decision-filter.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import {
  DECISION_COLUMNS,
  decisionRows,
  type NamedDecision,
  readClusterDecisions,
  readDecisions,
} from './decisions.ts';
import { awaited, Choice, Failure, type Option, Table } from './elements.ts';
import { currentAddress, setQuery } from './use-address.ts';
import { usePoll } from './use-poll.ts';

const POLL_MS = 5_000;
/** Reading the decisions of all objects reads every record of the last 30 days. */
const POLL_ALL_MS = 30_000;
const ROWS_MAX = 300;

const HOUR_MS = 3_600_000;

async function read(
  { about, name, hours, zone }: DecisionFilter,
  zones: readonly string[],
): Promise<readonly NamedDecision[]> {
  const sinceMs = clusterClock.nowMs() - hours * HOUR_MS;
  if (about === 'all') return await readDecisions('', sinceMs);
  if (about !== 'cluster') return name === '' ? [] : await readDecisions(`${about}=${name}`, sinceMs);
  return await readClusterDecisions(zone === '' ? zones : [zone], sinceMs);
}

interface DecisionsProps {
  readonly view: ClusterView;
  readonly address: Address;
}

export function DecisionsView({ view, address }: DecisionsProps): JSX.Element {
  const filter = decisionFilterOf(address.query);
  const zones = [...new Set([...view.nodes.values()].map(({ zone }) => zone))].sort();
  const key = JSON.stringify([filter.about, filter.name, filter.zone, filter.hours, zones]);
  const periodMs = filter.about === 'all' ? POLL_ALL_MS : POLL_MS;
  const { value, failure } = usePoll(key, periodMs, () => read(filter, zones));
  const matching = (value ?? []).filter(({ record }) => filter.act === '' || record.act === filter.act);
  const set = (part: Partial<DecisionFilter>): void =>
    setQuery(address, queryOfDecisions({ ...decisionFilterOf(currentAddress().query), ...part }));
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
      ? h('p', { class: 'empty' }, awaited('decisions', failure))
      : h(Table, {
          caption: 'Decisions',
          columns: DECISION_COLUMNS,
          rows: decisionRows(matching.slice(0, ROWS_MAX)),
          empty: 'No decision matches.',
        }),
  );
}

interface FormProps {
  readonly filter: DecisionFilter;
  readonly zones: readonly string[];
  readonly set: (part: Partial<DecisionFilter>) => void;
}

const ABOUT: readonly Option[] = [
  ['cluster', 'cluster and zones'],
  ['node', 'a node'],
  ['pod', 'a pod'],
  ['all', 'all objects (slow)'],
];

/** That of the address is a choice, whether or not it has a node. */
const zonesOfChoice = (zones: readonly string[], chosen: string): readonly string[] =>
  [...new Set([...zones, chosen])].filter((zone) => zone !== '').sort();

const FilterForm = ({ filter, zones, set }: FormProps): JSX.Element =>
  h(
    'form',
    { class: 'filter', onSubmit: (event: Event) => event.preventDefault() },
    h(Choice, {
      label: 'About',
      value: filter.about,
      options: ABOUT,
      onChoose: (about) => set({ about: about as DecisionFilter['about'], name: '', zone: '' }),
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
          options: [['', 'all'], ...zonesOfChoice(zones, filter.zone).map((zone): Option => [zone, zone])],
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
      options: DECISION_SPANS.map(([hours, text]): Option => [String(hours), text]),
      onChoose: (hours) => set({ hours: Number(hours) }),
    }),
  );
