import { expect, it } from 'vitest';
import type { MonitorDecision } from '../../shared/fleet/marks.rule.ts';
import type { ZoneState } from '../../shared/fleet/zone-state.ts';
import { clusterEvents, isDisrupted, zoneTransitions } from './zone-events.rule.ts';

const numbers = { size: 5, notReady: 4 };
const set = (from: ZoneState | undefined, to: ZoneState | undefined) =>
  ({ kind: 'setZoneState', zone: 'a', from, to, ...numbers }) as unknown as MonitorDecision;
const created = (state: ZoneState | undefined) =>
  ({ kind: 'createZone', zone: 'a', state, ratePerSecond: 1, ...numbers }) as unknown as MonitorDecision;

it.each<[MonitorDecision, string, string]>([
  [set('Normal', 'PartialDisruption'), 'ZoneDisrupted', 'PartialDisruption'],
  [set('PartialDisruption', 'FullDisruption'), 'ZoneDisrupted', 'FullDisruption'],
  [set('FullDisruption', 'PartialDisruption'), 'ZoneDisrupted', 'PartialDisruption'],
  [set('PartialDisruption', 'Normal'), 'ZoneRecovered', 'Normal'],
  [set('FullDisruption', undefined), 'ZoneRecovered', 'Normal'],
  [created('FullDisruption'), 'ZoneDisrupted', 'FullDisruption'],
])('publishes %j', (decision, type, state) => {
  expect(zoneTransitions([decision], 7)).toEqual([
    { type, id: `${type}/a/${state}/7`, zone: 'a', state, nodes: 5, notReady: 4 },
  ]);
});

it('has the same id in a tick that replaces one before the first', () => {
  expect(zoneTransitions([created('FullDisruption')], undefined)[0]?.id).toBe('ZoneDisrupted/a/FullDisruption/0');
});

it('publishes nothing of a zone that was and is not disrupted, or of another decision', () => {
  const other = { kind: 'setZoneRate', zone: 'a', state: 'FullDisruption', ...numbers } as unknown as MonitorDecision;
  const decisions = [set('Initial', 'Normal'), set(undefined, undefined), created('Normal'), created(undefined), other];
  expect(zoneTransitions(decisions, 7)).toEqual([]);
});

it('makes one event of each zone and one of total disruption', () => {
  const decisions = [
    set('Normal', 'FullDisruption'),
    { kind: 'enterTotalDisruption', zones: 3 } as unknown as MonitorDecision,
  ];
  const events = clusterEvents(decisions, zoneTransitions(decisions, 7), 7);
  expect(events.map(({ type, reason, message, once }) => [type, reason, message, once])).toEqual([
    [
      'Warning',
      'ZoneDisrupted',
      'Zone a is FullDisruption: 4 of 5 nodes are not ready',
      'ZoneDisrupted/a/FullDisruption/7',
    ],
    ['Warning', 'TotalDisruption', expect.stringMatching(/^All zones \(3\) are FullDisruption: no pod is evicted/), 7],
  ]);
  const ends = [
    set('FullDisruption', 'Normal'),
    { kind: 'leaveTotalDisruption', zones: 3 } as unknown as MonitorDecision,
  ];
  expect(clusterEvents(ends, zoneTransitions(ends, 9), 9).map(({ type, reason }) => [type, reason])).toEqual([
    ['Normal', 'ZoneRecovered'],
    ['Normal', 'TotalDisruptionEnded'],
  ]);
});

it('names the zone of nodes without a label', () => {
  const decisions = [{ ...set('Normal', 'FullDisruption'), zone: '' } as unknown as MonitorDecision];
  const [event] = clusterEvents(decisions, zoneTransitions(decisions, 7), 7);
  expect(event?.message).toContain('Zone "" (nodes without a zone label) is FullDisruption');
});

it('calls two states disrupted', () => {
  const states = ['Initial', 'Normal', 'PartialDisruption', 'FullDisruption', undefined] as const;
  expect(states.map(isDisrupted)).toEqual([false, false, true, true, false]);
});
