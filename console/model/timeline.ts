/** The states of zones, gate and cluster over time, from the decisions that set them. */
import type { DecisionAct, DecisionRecord } from '../../shared/decisions/decision-record.ts';

export type BandLevel = 'good' | 'warn' | 'bad' | 'none';

export interface Band {
  readonly fromMs: number;
  readonly toMs: number;
  readonly level: BandLevel;
  /** What it states: "FullDisruption", "Gate closed". */
  readonly text: string;
}

export interface Mark {
  readonly atMs: number;
  readonly text: string;
}

export interface TimelineRow {
  readonly key: string;
  readonly label: string;
  /** In order, without gaps where the state is known. */
  readonly bands: readonly Band[];
  readonly marks: readonly Mark[];
}

export interface TimelineSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

const ZONE_LEVELS: Readonly<Record<string, BandLevel>> = {
  Initial: 'good',
  Normal: 'good',
  PartialDisruption: 'warn',
  FullDisruption: 'bad',
};

interface Change {
  readonly atMs: number;
  readonly level: BandLevel;
  readonly text: string;
}

const inOrder = (records: readonly DecisionRecord[]): readonly DecisionRecord[] =>
  records.toSorted((one, other) => one.atMs - other.atMs);

/**
 * Each change lasts until the next one. `before`: the state before the first change. Bands outside of the span are cut.
 */
function bandsOf(
  changes: readonly Change[],
  before: Omit<Change, 'atMs'> | undefined,
  span: TimelineSpan,
): readonly Band[] {
  const bands: Band[] = [];
  const add = (fromMs: number, toMs: number, { level, text }: Omit<Change, 'atMs'>): void => {
    const from = Math.max(fromMs, span.fromMs);
    const to = Math.min(toMs, span.toMs);
    const last = bands.at(-1);
    if (to <= from) return;
    if (last !== undefined && last.text === text && last.toMs === from) bands[bands.length - 1] = { ...last, toMs: to };
    else bands.push({ fromMs: from, toMs: to, level, text });
  };
  const [first] = changes;
  if (before !== undefined) add(span.fromMs, first?.atMs ?? span.toMs, before);
  for (const [index, change] of changes.entries()) add(change.atMs, changes[index + 1]?.atMs ?? span.toMs, change);
  return bands;
}

/** `current`: what the controllers report now; it fills a span without a change. */
export function zoneRow(
  zone: string,
  records: readonly DecisionRecord[],
  current: string | undefined,
  span: TimelineSpan,
  label = zone,
): TimelineRow {
  const changes = inOrder(records)
    .filter(({ about, act }) => act === 'ZoneStateSet' && about.kind === 'Zone' && about.name === zone)
    .map(({ atMs, outcome }): Change => {
      const text = String(outcome['state'] ?? 'no nodes');
      return { atMs, level: ZONE_LEVELS[text] ?? 'none', text };
    });
  const before =
    changes.length > 0 || current === undefined ? undefined : { level: ZONE_LEVELS[current] ?? 'none', text: current };
  return {
    key: `zone ${zone}`,
    label: zone === '' ? 'without a zone' : label,
    bands: bandsOf(changes, before, span),
    marks: [],
  };
}

/** Zones by their last part, where that names one of them alone: all zones of a region begin with it. */
export function shortZoneNames(zones: readonly string[]): ReadonlyMap<string, string> {
  const lastPart = (zone: string): string => zone.slice(zone.lastIndexOf('/') + 1);
  const counts = new Map<string, number>();
  for (const zone of zones) counts.set(lastPart(zone), (counts.get(lastPart(zone)) ?? 0) + 1);
  return new Map(zones.map((zone) => [zone, counts.get(lastPart(zone)) === 1 ? lastPart(zone) : zone]));
}

/** A row that is in its good state until one of two acts says otherwise. */
function switchRow(
  key: string,
  label: string,
  records: readonly DecisionRecord[],
  acts: { readonly bad: DecisionAct; readonly good: DecisionAct; readonly badText: string; readonly goodText: string },
  current: SwitchNow | undefined,
  span: TimelineSpan,
): TimelineRow {
  const good = { level: 'good', text: acts.goodText } as const;
  const bad = { level: 'bad', text: acts.badText } as const;
  const changes = inOrder(records)
    .filter(({ act }) => act === acts.bad || act === acts.good)
    .map(({ atMs, act }): Change => ({ atMs, ...(act === acts.bad ? bad : good) }));
  const last = changes.at(-1);
  // Missing ticks close the gate, and no tick records that until the next one runs.
  if (current?.isBad === true && last?.level !== 'bad') {
    changes.push({ atMs: Math.max(current.sinceMs ?? span.toMs, last?.atMs ?? 0), ...bad });
  }
  const [first] = changes;
  return { key, label, marks: [], bands: bandsOf(changes, first?.text === acts.goodText ? bad : good, span) };
}

/** What the status of the cluster says. */
export interface SwitchNow {
  readonly isBad: boolean;
  /** Epoch milliseconds. */
  readonly sinceMs: number | undefined;
}

export const gateRow = (
  records: readonly DecisionRecord[],
  current: SwitchNow | undefined,
  span: TimelineSpan,
): TimelineRow =>
  switchRow(
    'gate',
    'Safety gate',
    records,
    { bad: 'GateClosed', good: 'GateOpened', badText: 'Gate closed', goodText: 'Gate open' },
    current,
    span,
  );

export const disruptionRow = (
  records: readonly DecisionRecord[],
  current: SwitchNow | undefined,
  span: TimelineSpan,
): TimelineRow =>
  switchRow(
    'disruption',
    'Evictions',
    records,
    {
      bad: 'TotalDisruptionEntered',
      good: 'TotalDisruptionLeft',
      badText: 'Stopped: total disruption',
      goodText: 'Allowed',
    },
    current,
    span,
  );

/** A node: not Ready from its mark until the taints of the mark are lifted. */
export function nodeRow(
  name: string,
  records: readonly DecisionRecord[],
  current: Omit<Change, 'atMs'> & { readonly sinceMs: number | undefined },
  span: TimelineSpan,
): TimelineRow {
  const own = inOrder(records).filter(({ about }) => about.kind === 'Node' && about.name === name);
  const changes = own.flatMap(({ atMs, act, reason }): readonly Change[] => {
    if (act === 'MarkUnknown') return [{ atMs, level: 'bad', text: 'Unknown' }];
    if (act === 'TaintLifted' && reason.startsWith('Ready is True')) return [{ atMs, level: 'good', text: 'Ready' }];
    if (act === 'NodeDeleted') return [{ atMs, level: 'none', text: 'deleted' }];
    return [];
  });
  const { sinceMs, level, text } = current;
  const last = changes.at(-1);
  // Its own report of NotReady is no decision: the condition has the time.
  if (sinceMs !== undefined && (last === undefined || (last.text !== text && sinceMs >= last.atMs))) {
    changes.push({ atMs: sinceMs, level, text });
  }
  return {
    key: `node ${name}`,
    label: name,
    bands: bandsOf(changes, undefined, span),
    marks: own.filter(({ atMs }) => atMs >= span.fromMs).map(({ atMs, act }) => ({ atMs, text: act })),
  };
}

/** When the last band that is not good ended; the end of the span while one lasts; undefined without one. */
export function lastTroubleMs(rows: readonly TimelineRow[]): number | undefined {
  const ends = rows.flatMap(({ bands }) =>
    bands.flatMap(({ level, toMs }) => (level === 'bad' || level === 'warn' ? [toMs] : [])),
  );
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** The state of each row at a moment. */
export const statesAt = (
  rows: readonly TimelineRow[],
  atMs: number,
): readonly { readonly row: TimelineRow; readonly band: Band | undefined }[] =>
  rows.map((row) => ({
    row,
    band: row.bands.find(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs) ?? bandAtEnd(row, atMs),
  }));

const bandAtEnd = ({ bands }: TimelineRow, atMs: number): Band | undefined => {
  const last = bands.at(-1);
  return last?.toMs === atMs ? last : undefined;
};

/** Moments at which something changed, in order: where the keyboard stops. */
export const momentsOf = (rows: readonly TimelineRow[], { fromMs, toMs }: TimelineSpan): readonly number[] => [
  ...new Set(
    [
      ...rows.flatMap(({ bands, marks }) => [...bands.map((band) => band.fromMs), ...marks.map(({ atMs }) => atMs)]),
      toMs,
    ]
      .filter((atMs) => atMs >= fromMs && atMs <= toMs)
      .sort((one, other) => one - other),
  ),
];

/**
 * Whole hours or days of the reader, also where the clock changes to or from summer time. `offsetMsAt`: UTC minus the
 * time of the reader at a moment.
 */
export function axisTicks(
  { fromMs, toMs }: TimelineSpan,
  tickMs: number,
  offsetMsAt: (ms: number) => number,
): readonly number[] {
  const ticks: number[] = [];
  const firstMs = Math.ceil((fromMs - offsetMsAt(fromMs)) / tickMs) * tickMs;
  for (let localMs = firstMs; localMs < toMs - offsetMsAt(toMs); localMs += tickMs) {
    const nearMs = localMs + offsetMsAt(fromMs);
    const ms = localMs + offsetMsAt(nearMs);
    // An hour that summer time leaves out is at the moment of the one before it.
    if (ms >= fromMs && ms !== ticks.at(-1)) ticks.push(ms);
  }
  return ticks;
}

/** Decisions up to a moment, the newest first. */
export const decidedBefore = (
  records: readonly DecisionRecord[],
  atMs: number,
  countMax: number,
): readonly DecisionRecord[] =>
  records
    .filter((record) => record.atMs <= atMs)
    .sort((one, other) => other.atMs - one.atMs)
    .slice(0, countMax);
