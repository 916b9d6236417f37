import { expect, it } from 'vitest';
import { fateOf, type OwnerState } from './rule.ts';

const owners = (...states: OwnerState[]) =>
  states.map((state, at) => ({ state, reference: { apiVersion: 'v1', kind: 'K', name: `o${at}`, uid: `u${at}` } }));
const NO = { isDeleting: false, hasDependents: false };
const KEEP = { kind: 'keep' };
const BACKGROUND = { kind: 'delete', policy: 'Background' };

it.each<[OwnerState[], object, object]>([
  [[], NO, KEEP],
  [['solid'], NO, KEEP],
  [['unknown'], NO, KEEP],
  [['solid', 'unknown'], NO, KEEP],
  [['absent'], NO, BACKGROUND],
  [['absent'], { ...NO, isDeleting: true }, KEEP],
  [['absent'], { ...NO, hasDependents: true }, BACKGROUND],
  [['waiting'], NO, BACKGROUND],
  [['waiting'], { ...NO, hasDependents: true }, { kind: 'delete', policy: 'Foreground' }],
  [['absent', 'waiting'], { ...NO, hasDependents: true }, { kind: 'delete', policy: 'Foreground' }],
  [['solid', 'absent'], NO, { kind: 'release', uids: ['u1'] }],
  [['absent', 'unknown'], NO, { kind: 'release', uids: ['u0'] }],
  [['waiting', 'solid', 'absent'], NO, { kind: 'release', uids: ['u0', 'u2'] }],
  [['waiting', 'solid'], { ...NO, isDeleting: true }, KEEP],
])('an object with owners that are %j, %j, has the fate %j', (states, object, fate) => {
  expect(fateOf(owners(...states), object as typeof NO)).toEqual(fate);
});
