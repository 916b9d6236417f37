import { describe, expect, it } from 'vitest';
import type { DecisionAct, DecisionRecord } from '../../shared/decisions/decision-record.ts';
import { FLEET } from '../../shared/decisions/decision-record.ts';
import {
  axisTicks,
  decidedBefore,
  disruptionRow,
  gateRow,
  lastTroubleMs,
  momentsOf,
  nodeRow,
  shortZoneNames,
  statesAt,
  type TimelineRow,
  zoneRow,
} from './timeline.ts';

const record = (atMs: number, act: DecisionAct, more: Partial<DecisionRecord> = {}): DecisionRecord => ({
  v: 1,
  act,
  about: FLEET,
  atMs,
  reason: '',
  rule: '',
  inputs: {},
  outcome: {},
  policy: '',
  sum: String(atMs),
  ...more,
});
const zoneSet = (atMs: number, state: string, name = 'a'): DecisionRecord =>
  record(atMs, 'ZoneStateSet', { about: { kind: 'Zone', name }, outcome: { state } });

const SPAN = { fromMs: 100, toMs: 200 };
const textOf = ({ bands }: TimelineRow): readonly string[] =>
  bands.map(({ fromMs, toMs, level, text }) => `${fromMs}-${toMs} ${level} ${text}`);

describe('the timeline of a zone', () => {
  it('has the state from each decision to the next, cut to the span', () => {
    const records = [
      zoneSet(170, 'Normal'),
      zoneSet(150, 'FullDisruption'),
      zoneSet(50, 'Normal'),
      zoneSet(160, 'Normal', 'b'),
    ];
    expect(textOf(zoneRow('a', records, 'Normal', SPAN))).toEqual([
      '100-150 good Normal',
      '150-170 bad FullDisruption',
      '170-200 good Normal',
    ]);
  });

  it('without a decision is what the controllers report, and unknown before its first one', () => {
    expect(textOf(zoneRow('a', [], 'PartialDisruption', SPAN))).toEqual(['100-200 warn PartialDisruption']);
    expect(textOf(zoneRow('a', [], undefined, SPAN))).toEqual([]);
    expect(textOf(zoneRow('a', [zoneSet(120, 'Normal')], 'Normal', SPAN))).toEqual(['120-200 good Normal']);
  });
});

it('shows the gate and total disruption as bands, also those that began before the span', () => {
  expect(textOf(gateRow([], undefined, SPAN))).toEqual(['100-200 good Gate open']);
  expect(textOf(gateRow([record(110, 'GateOpened'), record(180, 'GateClosed')], undefined, SPAN))).toEqual([
    '100-110 bad Gate closed',
    '110-180 good Gate open',
    '180-200 bad Gate closed',
  ]);
  expect(
    textOf(disruptionRow([record(90, 'TotalDisruptionEntered'), record(120, 'TotalDisruptionLeft')], undefined, SPAN)),
  ).toEqual(['100-120 bad Stopped: total disruption', '120-200 good Allowed']);
});

it('shows a gate that closed without a record, because no tick ran', () => {
  expect(textOf(gateRow([record(50, 'GateOpened')], { isBad: true, sinceMs: 160 }, SPAN))).toEqual([
    '100-160 good Gate open',
    '160-200 bad Gate closed',
  ]);
});

describe('the timeline of a node', () => {
  const about = { kind: 'Node', name: 'n' } as const;
  const marked = record(110, 'MarkUnknown', { about });
  const lifted = record(130, 'TaintLifted', {
    about,
    reason: 'Ready is True: -node.kubernetes.io/unreachable:NoSchedule',
  });

  it('is Unknown from its mark until it is Ready, with a mark for each decision', () => {
    const row = nodeRow('n', [lifted, marked], { level: 'good', text: 'Ready', sinceMs: 130 }, SPAN);
    expect(textOf(row)).toEqual(['110-130 bad Unknown', '130-200 good Ready']);
    expect(row.marks.map(({ text }) => text)).toEqual(['MarkUnknown', 'TaintLifted']);
  });

  it('has its own report of NotReady from its condition', () => {
    expect(textOf(nodeRow('n', [lifted], { level: 'warn', text: 'NotReady', sinceMs: 160 }, SPAN))).toEqual([
      '130-160 good Ready',
      '160-200 warn NotReady',
    ]);
  });
});

describe('a moment', () => {
  const rows = [
    zoneRow('a', [zoneSet(50, 'Normal'), zoneSet(150, 'FullDisruption')], 'FullDisruption', SPAN),
    gateRow([], undefined, SPAN),
  ];

  it('has the state of each row, also at the end of the span', () => {
    const texts = (atMs: number) => statesAt(rows, atMs).map(({ band }) => band?.text);
    expect([texts(149), texts(150), texts(200)]).toEqual([
      ['Normal', 'Gate open'],
      ['FullDisruption', 'Gate open'],
      ['FullDisruption', 'Gate open'],
    ]);
  });

  it('is one at which something changed, for the keyboard', () => {
    expect(momentsOf(rows, SPAN)).toEqual([100, 150, 200]);
  });

  it('has the decisions until then, the newest first', () => {
    expect(
      decidedBefore([record(1, 'GateClosed'), record(3, 'GateOpened'), record(2, 'GateOpened')], 2, 5).map(
        ({ atMs }) => atMs,
      ),
    ).toEqual([2, 1]);
  });
});

it('knows when the last trouble ended', () => {
  expect(lastTroubleMs([gateRow([], undefined, SPAN)])).toBeUndefined();
  expect(lastTroubleMs([zoneRow('a', [zoneSet(50, 'FullDisruption'), zoneSet(150, 'Normal')], 'Normal', SPAN)])).toBe(
    150,
  );
});

describe('the axis', () => {
  const HOUR_MS = 3_600_000;
  const DAY_MS = 24 * HOUR_MS;
  const ticks = (from: string, to: string, tickMs: number, offsetMsAt: (ms: number) => number): readonly string[] =>
    axisTicks({ fromMs: Date.parse(from), toMs: Date.parse(to) }, tickMs, offsetMsAt).map((ms) =>
      new Date(ms).toISOString().slice(5, 16),
    );
  const berlin = (changesAt: string, beforeHours: number, afterHours: number) => (ms: number) =>
    (ms < Date.parse(changesAt) ? beforeHours : afterHours) * HOUR_MS;

  it('has the days of the reader at midnight, also after summer time began', () => {
    const offset = berlin('2026-03-29T01:00:00Z', -1, -2);
    expect(ticks('2026-03-27T12:00:00Z', '2026-03-31T12:00:00Z', DAY_MS, offset)).toEqual([
      '03-27T23:00',
      '03-28T23:00',
      '03-29T22:00',
      '03-30T22:00',
    ]);
  });

  it('has no hour twice when summer time begins', () => {
    const offset = berlin('2026-03-29T01:00:00Z', -1, -2);
    const hours = (from: string) => ticks(from, '2026-03-29T02:30:00Z', HOUR_MS, offset);
    expect(hours('2026-03-28T23:30:00Z')).toEqual(['03-29T00:00', '03-29T01:00', '03-29T02:00']);
    expect(hours('2026-03-29T00:30:00Z')).toEqual(['03-29T01:00', '03-29T02:00']);
  });

  it('has the days also after summer time ended', () => {
    const offset = berlin('2026-10-25T01:00:00Z', -2, -1);
    const ended = (to: string) => ticks('2026-10-24T12:00:00Z', to, DAY_MS, offset);
    expect(ended('2026-10-26T12:00:00Z')).toEqual(['10-24T22:00', '10-25T23:00']);
    expect(ended('2026-10-25T22:30:00Z')).toEqual(['10-24T22:00']);
  });
});

it('names zones by their last part, unless two have the same', () => {
  expect([...shortZoneNames(['eu/a', 'eu/b', 'us/b', '']).values()]).toEqual(['a', 'eu/b', 'us/b', '']);
});
