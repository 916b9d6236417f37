import { describe, expect, it } from 'vitest';
import type { NodeCondition } from '../../kubernetes/kubernetes.ts';
import {
  plannedUntilMs,
  promiseFault,
  PLANNED_REASON_ANNOTATION as REASON,
  silenceMarks,
  PLANNED_SILENCE_TAINT as TAINT,
  PLANNED_UNTIL_ANNOTATION as UNTIL,
  withoutPromise,
} from './planned-silence.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const at = (seconds: number): string => new Date(NOW_MS + seconds * 1_000).toISOString().replace('.000', '');

it('a promise is the time in its annotation, if that is one', () => {
  expect(plannedUntilMs({ [UNTIL]: at(60) })).toBe(NOW_MS + 60_000);
  expect(plannedUntilMs({ [UNTIL]: 'tomorrow' })).toBeUndefined();
  expect(plannedUntilMs({})).toBeUndefined();
  expect(plannedUntilMs(undefined)).toBeUndefined();
});

describe('a promise', () => {
  const faultOf = (next: Record<string, string> | undefined, stored?: Record<string, string>, maxSeconds = 600) =>
    promiseFault(next, stored, { nowMs: NOW_MS, maxSeconds });

  it.each([1, 600])('of %i s is accepted', (seconds) => {
    expect(faultOf({ [UNTIL]: at(seconds) })).toBeUndefined();
  });

  it.each([
    [at(601), 'must be at most 600 s ahead: 2026-01-01T12:10:00Z'],
    [at(0), 'must be in the future, at most 2026-01-01T12:10:00Z'],
    [at(-5), 'must be in the future, at most 2026-01-01T12:10:00Z'],
    ['tomorrow', 'must be a time in RFC 3339, such as 2026-01-31T18:00:00Z'],
  ])('until %s is refused: %s', (value, rule) => {
    expect(faultOf({ [UNTIL]: value })).toEqual({ annotation: UNTIL, value, rule });
  });

  it('is refused where none is permitted', () => {
    expect(faultOf({ [UNTIL]: at(1) }, undefined, 0)?.rule).toMatch(/maxPlannedSilenceSeconds of the policy is 0$/);
  });

  it('that does not change is accepted, whatever it is', () => {
    for (const value of ['tomorrow', at(-5), at(9_999)]) {
      expect(faultOf({ [UNTIL]: value }, { [UNTIL]: value }, 0)).toBeUndefined();
      expect(faultOf({ [UNTIL]: value }, { [UNTIL]: at(1) })).toBeDefined();
    }
    expect(faultOf({}, { [UNTIL]: at(1) })).toBeUndefined();
    expect(faultOf(undefined, undefined)).toBeUndefined();
  });

  it('has a reason of at most 200 characters, unless that is stored', () => {
    const long = 'x'.repeat(201);
    expect(faultOf({ [REASON]: 'x'.repeat(200) })).toBeUndefined();
    expect(faultOf({ [REASON]: long })).toMatchObject({ annotation: REASON, value: long });
    expect(faultOf({ [REASON]: long }, { [REASON]: 'x' })).toBeDefined();
    expect(faultOf({ [REASON]: long }, { [REASON]: long })).toBeUndefined();
  });
});

describe('the marks of a promise', () => {
  const OTHER_TAINT = { key: 'k', effect: 'NoSchedule' } as const;
  const READY: NodeCondition = { type: 'Ready', status: 'True' };
  const condition = (parts: Partial<NodeCondition> = {}): NodeCondition => ({
    type: 'PlannedSilence',
    status: 'True',
    reason: 'Announced',
    message: 'No heartbeat is expected until 2026-01-01T12:01:00Z',
    lastTransitionTime: at(-9),
    ...parts,
  });
  const ended = condition({ status: 'False', reason: 'Ended', message: 'The planned silence has ended.' });
  const marksOf = (annotations: Record<string, string>, conditions: readonly NodeCondition[], isTainted: boolean) =>
    silenceMarks(
      {
        annotations,
        taints: isTainted ? [OTHER_TAINT, { ...TAINT }] : [OTHER_TAINT],
        conditions: [READY, ...conditions],
      },
      NOW_MS,
    );

  it('are a taint and a condition, beside those of others', () => {
    expect(marksOf({ [UNTIL]: at(60) }, [], false)).toEqual({
      taints: [OTHER_TAINT, { ...TAINT }],
      conditions: [READY, condition({ lastTransitionTime: at(0) })],
    });
  });

  it('have the reason in their message', () => {
    const marks = marksOf({ [UNTIL]: at(60), [REASON]: 'reboot' }, [], false);
    expect(marks?.conditions[1]?.message).toBe('No heartbeat is expected until 2026-01-01T12:01:00Z: reboot');
  });

  it('stay while the promise stays', () => {
    expect(marksOf({ [UNTIL]: at(60) }, [condition()], true)).toBeUndefined();
    expect(marksOf({}, [], false)).toBeUndefined();
    expect(marksOf({}, [ended], false)).toBeUndefined();
  });

  it('are repaired one by one, and the transition time stays while the status does', () => {
    expect(marksOf({ [UNTIL]: at(60) }, [condition()], false)).toEqual({
      taints: [OTHER_TAINT, { ...TAINT }],
      conditions: [READY, condition()],
    });
    const later = marksOf({ [UNTIL]: at(120) }, [condition()], true);
    expect(later?.taints).toHaveLength(2);
    expect(later?.conditions[1]).toEqual(
      condition({ message: 'No heartbeat is expected until 2026-01-01T12:02:00Z', lastTransitionTime: at(-9) }),
    );
    expect(marksOf({ [UNTIL]: at(60) }, [ended], false)?.conditions[1]?.lastTransitionTime).toBe(at(0));
  });

  it.each([
    ['at its time', { [UNTIL]: at(0) }],
    ['without its annotation', {}],
  ] as [string, Record<string, string>][])('end %s', (_text, annotations) => {
    expect(marksOf(annotations, [condition()], true)).toEqual({
      taints: [OTHER_TAINT],
      conditions: [READY, { ...ended, lastTransitionTime: at(0) }],
    });
  });

  it('that are incomplete end too', () => {
    expect(marksOf({}, [ended], true)).toEqual({ taints: [OTHER_TAINT], conditions: [READY, ended] });
    expect(marksOf({}, [condition()], false)?.conditions[1]?.status).toBe('False');
  });
});

it('a Node without its promise keeps its other annotations', () => {
  expect(withoutPromise({ [UNTIL]: 'x', [REASON]: 'y', other: 'z' })).toEqual({ other: 'z' });
  expect(withoutPromise(undefined)).toEqual({});
});
