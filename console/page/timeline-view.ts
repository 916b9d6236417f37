/** The states of zones, gate and cluster over time. A moment can be opened: what was known, decided and done. */
import { h, type JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { DecisionRecord } from '../../shared/decisions/decision-record.ts';
import type { KubeEvent } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import type { NodeCell } from '../model/node-cell.ts';
import { termIn } from '../model/terms.ts';
import {
  axisTicks,
  decidedBefore,
  disruptionRow,
  gateRow,
  momentsOf,
  nodeRow,
  shortZoneNames,
  statesAt,
  type TimelineRow,
  type TimelineSpan,
  zoneRow,
} from '../model/timeline.ts';
import type { ZoneSummary } from '../model/zone-summary.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import { DECISION_COLUMNS, decisionRows, readDecisions } from './decisions.ts';
import { Choice, nodeLink, Sentence, Table, Time } from './elements.ts';
import { readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const EVENTS_MS = 15_000;
const NODE_DECISIONS_MS = 15_000;
/** Rows of an expanded zone: each needs a query. */
const NODE_ROWS_MAX = 12;
const ZONE_ROWS_MAX = 26;
const MOMENT_DECISIONS_MAX = 12;
const PAGES_MAX = 4;
/** Of the axis: a label that begins later has no place. */
const LABEL_SHARE = 0.06;

const SPANS: readonly (readonly [ms: number, text: string, tickMs: number])[] = [
  [HOUR_MS, 'last hour', 10 * MINUTE_MS],
  [6 * HOUR_MS, 'last 6 hours', HOUR_MS],
  [DAY_MS, 'last 24 hours', 4 * HOUR_MS],
  [7 * DAY_MS, 'last 7 days', DAY_MS],
  [30 * DAY_MS, 'last 30 days', 5 * DAY_MS],
];

interface TimelineProps {
  readonly view: ClusterView;
  /** The worst first. */
  readonly zones: readonly ZoneSummary[];
  readonly records: readonly DecisionRecord[];
  readonly nowMs: number;
}

export function TimelineView({ view, zones, records, nowMs }: TimelineProps): JSX.Element {
  const [spanMs, setSpanMs] = useState(HOUR_MS);
  const [open, setOpen] = useState<string | undefined>(undefined);
  const span: TimelineSpan = { fromMs: nowMs - spanMs, toMs: nowMs };
  const openZone = zones.find(({ zone }) => zone === open);
  const cells = (openZone?.cells ?? []).toSorted(downFirst).slice(0, NODE_ROWS_MAX);
  const ofNodes = usePoll(`nodes of ${open ?? ''}`, NODE_DECISIONS_MS, () => readOfNodes(cells));
  const scaled = usePoll('scaled', EVENTS_MS, readScaled);
  const { status } = view;
  const labels = shortZoneNames(zones.map(({ zone }) => zone));
  const rows = [
    gateRow(records, { isBad: status?.gate?.state === 'Closed', sinceMs: parseTimeMs(status?.gate?.since) }, span),
    disruptionRow(records, { isBad: status?.totalDisruption === true, sinceMs: undefined }, span),
    { key: 'deployments', label: 'Deployments', bands: [], marks: scaled.value ?? [] },
    ...zones
      .slice(0, ZONE_ROWS_MAX)
      .flatMap(({ zone, state }) => [
        zoneRow(zone, records, state, span, labels.get(zone)),
        ...(zone === open ? cells.map((cell) => nodeRow(cell.name, ofNodes.value ?? [], stateOf(cell), span)) : []),
      ]),
  ];
  return h(
    'section',
    { class: 'timeline-section', 'aria-labelledby': 'timeline-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h3', { id: 'timeline-title' }, 'What happened'),
      h(Choice, {
        label: 'Time',
        value: String(spanMs),
        options: SPANS.map(([ms, text]) => [String(ms), text] as const),
        onChoose: (value) => setSpanMs(Number(value)),
      }),
    ),
    h(Chart, {
      rows,
      span,
      records: ofNodes.value === undefined ? records : [...records, ...ofNodes.value],
      open,
      setOpen,
    }),
    zones.length > ZONE_ROWS_MAX
      ? h('p', { class: 'note' }, `The worst ${ZONE_ROWS_MAX} of ${zones.length} zones.`)
      : null,
  );
}

const downFirst = (one: NodeCell, other: NodeCell): number =>
  Number(one.state === 'Ready') - Number(other.state === 'Ready');

const stateOf = ({ state, readySinceMs }: NodeCell) => ({
  level: state === 'Ready' ? ('good' as const) : state === 'NotReady' ? ('warn' as const) : ('bad' as const),
  text: state,
  sinceMs: readySinceMs,
});

interface ChartProps {
  readonly rows: readonly TimelineRow[];
  readonly span: TimelineSpan;
  readonly records: readonly DecisionRecord[];
  readonly open: string | undefined;
  readonly setOpen: (zone: string | undefined) => void;
}

function Chart({ rows, span, records, open, setOpen }: ChartProps): JSX.Element {
  const [cursorMs, setCursorMs] = useState<number | undefined>(undefined);
  const [pinnedMs, setPinnedMs] = useState<number | undefined>(undefined);
  const slider = useRef<HTMLDivElement>(null);
  const shownMs = Math.min(span.toMs, Math.max(span.fromMs, cursorMs ?? pinnedMs ?? span.toMs));
  const at = (ms: number): string => `${(100 * (ms - span.fromMs)) / (span.toMs - span.fromMs)}%`;
  const momentAt = (event: MouseEvent): number => {
    const box = slider.current!.getBoundingClientRect();
    return span.fromMs + ((event.clientX - box.left) / box.width) * (span.toMs - span.fromMs);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moments = momentsOf(rows, span);
    const next: Readonly<Record<string, number | undefined>> = {
      ArrowLeft: moments.findLast((ms) => ms < shownMs - 1) ?? span.fromMs,
      ArrowRight: moments.find((ms) => ms > shownMs + 1) ?? span.toMs,
      Home: span.fromMs,
      End: span.toMs,
    };
    if (event.key in next) setCursorMs(next[event.key]);
    else if (event.key === 'Enter' || event.key === ' ') setPinnedMs(shownMs);
    else if (event.key === 'Escape') setPinnedMs(undefined);
    else return;
    event.preventDefault();
  };
  return h(
    'div',
    { class: 'chart-rows' },
    h(
      'div',
      { class: 'tracks' },
      ...rows.map((row) => h(Row, { key: row.key, row, at, open, setOpen })),
      h(Axis, { span, at }),
      h(
        'div',
        {
          ref: slider,
          class: 'moment-slider',
          role: 'slider',
          tabIndex: 0,
          'aria-label': 'Moment. Enter opens it.',
          'aria-valuemin': Math.round(span.fromMs / 1_000),
          'aria-valuemax': Math.round(span.toMs / 1_000),
          'aria-valuenow': Math.round(shownMs / 1_000),
          'aria-valuetext': momentText(rows, shownMs),
          onKeyDown,
          onMouseMove: (event: MouseEvent) => setCursorMs(momentAt(event)),
          onMouseLeave: () => setCursorMs(undefined),
          onClick: (event: MouseEvent) => setPinnedMs(momentAt(event)),
        },
        h('div', { class: 'cursor-line', style: { left: at(shownMs) } }),
      ),
    ),
    h('p', { class: 'pointed', 'aria-hidden': 'true' }, momentText(rows, shownMs)),
    pinnedMs === undefined ? null : h(Moment, { rows, records, atMs: pinnedMs, close: () => setPinnedMs(undefined) }),
  );
}

const timeText = (ms: number): string => new Date(ms).toLocaleString();

/** What is not as it should be at a moment; the gate otherwise. */
function momentText(rows: readonly TimelineRow[], atMs: number): string {
  const states = statesAt(rows, atMs).filter(({ band }) => band !== undefined && band.level !== 'good');
  const text = states.map(({ row, band }) => `${row.label}: ${band!.text}`).join(', ');
  return `${timeText(atMs)}: ${text === '' ? 'nothing wrong is recorded' : text}`;
}

const labelTitle = (label: string): string => (termIn(label) === undefined ? label : '');

interface RowProps {
  readonly row: TimelineRow;
  readonly at: (ms: number) => string;
  readonly open: string | undefined;
  readonly setOpen: (zone: string | undefined) => void;
}

function Row({ row, at, open, setOpen }: RowProps): JSX.Element {
  const zone = row.key.startsWith('zone ') ? row.key.slice('zone '.length) : undefined;
  return h(
    'div',
    { class: `row ${row.key.split(' ')[0]}` },
    h(
      'div',
      { class: 'row-label', title: labelTitle(zone || row.label) },
      zone === undefined
        ? row.key.startsWith('node ')
          ? nodeLink(row.label)
          : h(Sentence, { text: row.label })
        : h(
            'button',
            {
              type: 'button',
              class: 'plain',
              'aria-expanded': zone === open,
              onClick: () => setOpen(zone === open ? undefined : zone),
            },
            zone === open ? '▾ ' : '▸ ',
            row.label,
          ),
    ),
    h(
      'div',
      { class: 'track' },
      ...row.bands.map(({ fromMs, toMs, level, text }) =>
        h(
          'div',
          {
            key: fromMs,
            class: `band is-${level}`,
            style: { left: at(fromMs), width: `calc(${at(toMs)} - ${at(fromMs)})` },
          },
          level === 'good' ? '' : text,
        ),
      ),
      ...row.marks.map(({ atMs, text }, index) =>
        h('div', { key: index, class: 'mark', title: text, style: { left: at(atMs) } }),
      ),
    ),
  );
}

const offsetMsAt = (ms: number): number => new Date(ms).getTimezoneOffset() * MINUTE_MS;

function Axis({ span, at }: { readonly span: TimelineSpan; readonly at: (ms: number) => string }): JSX.Element {
  const lengthMs = span.toMs - span.fromMs;
  const [, , tickMs] = SPANS.find(([ms]) => ms >= lengthMs - 1) ?? SPANS.at(-1)!;
  const ticks = axisTicks({ ...span, toMs: span.toMs - LABEL_SHARE * lengthMs }, tickMs, offsetMsAt);
  const text = (ms: number): string =>
    tickMs >= DAY_MS
      ? new Date(ms).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })
      : new Date(ms).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  return h(
    'div',
    { class: 'row axis', 'aria-hidden': 'true' },
    h('div', { class: 'row-label' }),
    h('div', { class: 'track' }, ...ticks.map((ms) => h('span', { key: ms, style: { left: at(ms) } }, text(ms)))),
  );
}

interface MomentProps {
  readonly rows: readonly TimelineRow[];
  readonly records: readonly DecisionRecord[];
  readonly atMs: number;
  readonly close: () => void;
}

const Moment = ({ rows, records, atMs, close }: MomentProps): JSX.Element => {
  const decided = useMemo(() => decidedBefore(records, atMs, MOMENT_DECISIONS_MAX), [records, atMs]);
  return h(
    'section',
    { class: 'moment', 'aria-labelledby': 'moment-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h3', { id: 'moment-title' }, 'At ', h(Time, { atMs })),
      h('button', { type: 'button', onClick: close }, 'Close'),
    ),
    h(Table, {
      caption: 'What was known',
      columns: ['Of', 'State', 'Since'],
      rows: statesAt(rows, atMs)
        .filter(({ band }) => band !== undefined)
        .map(({ row, band }) => [
          row.label,
          h('span', { class: band!.level === 'good' || band!.level === 'none' ? '' : 'warn' }, band!.text),
          h(Time, { atMs: band!.fromMs }),
        ]),
      empty: 'Nothing is recorded about that time.',
    }),
    h('h4', null, 'Decided until then, the newest first'),
    h(Table, {
      caption: 'Decisions until this moment',
      columns: DECISION_COLUMNS,
      rows: decisionRows(decided.map((record, index) => ({ name: `${record.sum}-${index}`, record }))),
      empty: 'No decision is recorded before it.',
    }),
  );
};

async function readOfNodes(cells: readonly NodeCell[]): Promise<readonly DecisionRecord[]> {
  const sinceMs = clusterClock.nowMs() - 30 * DAY_MS;
  const found = await Promise.all(cells.map(({ name }) => readDecisions(`node=${name}`, sinceMs)));
  return found.flat().map(({ record }) => record);
}

/** When Deployments were scaled or rolled out: events, which are kept for an hour. */
async function readScaled() {
  const events: KubeEvent[] = [];
  await readPages<KubeEvent>(
    '/api/v1/events',
    { fieldSelector: 'reason=ScalingReplicaSet' },
    { pagesMax: PAGES_MAX, onPage: (items) => events.push(...items) },
  );
  return events.flatMap(({ involvedObject, message = '', firstTimestamp, metadata }) => {
    const atMs = parseTimeMs(firstTimestamp ?? metadata.creationTimestamp);
    const name = `${involvedObject?.namespace ?? ''}/${involvedObject?.name ?? ''}`;
    return atMs === undefined ? [] : [{ atMs, text: `${timeText(atMs)} ${name}: ${message}` }];
  });
}
