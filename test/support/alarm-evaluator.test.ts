import { describe, expect, it } from 'vitest';
import { verdict } from './alarm-evaluator.ts';

/** X breaches, 0 does not, - is missing; as in the tables of the User Guide. */
const points = (text: string) => [...text].map((point) => (point === '-' ? undefined : point === 'X'));
const treatments = ['missing', 'ignore', 'breaching', 'notBreaching'] as const;
const states = (text: string, toAlarm: number) =>
  treatments.map((missing) => verdict(points(text), { wanted: 3, toAlarm, missing, before: 'INSUFFICIENT_DATA' }));
/** Differs from the previous state. */
const kept = 'INSUFFICIENT_DATA';

describe('missing data, as CloudWatch documents it', () => {
  it.each([
    ['0-X-X', 'OK', 'OK', 'OK', 'OK'],
    ['----0', 'OK', 'OK', 'OK', 'OK'],
    ['-----', kept, kept, 'ALARM', 'OK'],
    ['0XX-X', 'ALARM', 'ALARM', 'ALARM', 'ALARM'],
    ['--X--', 'ALARM', kept, 'ALARM', 'OK'],
  ])('of three in three: %s', (text, ...expected) => {
    expect(states(text, 3)).toEqual(expected);
  });

  it.each([
    ['0-X-X', 'ALARM', 'ALARM', 'ALARM', 'ALARM'],
    ['00X0X', 'ALARM', 'ALARM', 'ALARM', 'ALARM'],
    ['0-X--', 'OK', 'OK', 'ALARM', 'OK'],
    ['----0', 'OK', 'OK', 'ALARM', 'OK'],
    ['----X', 'ALARM', kept, 'ALARM', 'OK'],
  ])('of two in three: %s', (text, ...expected) => {
    expect(states(text, 2)).toEqual(expected);
  });
});
