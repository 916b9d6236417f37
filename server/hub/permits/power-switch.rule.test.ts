import { expect, it } from 'vitest';
import { HEARD_MS, hearingAfter, machineToSwitchOff, type SiteMachine, SWITCH_AGAIN_MS } from './power-switch.rule.ts';
import { SILENT_MS } from './site-permits.ts';

const NOW_MS = 1_000_000;
const machine = (name: string, more: Partial<SiteMachine> = {}): SiteMachine => ({
  ...{ name, askedAtMs: undefined, isSilent: false, isReady: false, holdsPods: true, triedAtMs: undefined },
  ...more,
});
const silent = (name: string, more: Partial<SiteMachine> = {}): SiteMachine =>
  machine(name, { isSilent: true, ...more });
const chosen = (...machines: readonly SiteMachine[]) =>
  machineToSwitchOff(machines, { sinceMs: 0, atMs: NOW_MS }, NOW_MS);

it('switches off a silent machine that may run pods', () => {
  expect(chosen(machine('a'), silent('b'), machine('c'))).toBe('b');
  expect(chosen(machine('a'), silent('b', { holdsPods: false }))).toBeUndefined();
  expect(chosen(machine('a'), machine('b'))).toBeUndefined();
});

it('switches off none while more machines are silent than ask', () => {
  expect(chosen(machine('a'), silent('b'))).toBe('b');
  expect(chosen(machine('a'), silent('b'), silent('c'))).toBeUndefined();
  expect(chosen(silent('b'))).toBeUndefined();
});

it('switches off none that the cluster has as ready', () => {
  expect(chosen(machine('a'), silent('b', { isReady: true }))).toBeUndefined();
});

it('tries again after a minute, and others first', () => {
  expect(chosen(machine('a'), silent('b', { triedAtMs: NOW_MS - SWITCH_AGAIN_MS + 1 }))).toBeUndefined();
  expect(chosen(machine('a'), silent('b', { triedAtMs: NOW_MS - SWITCH_AGAIN_MS }))).toBe('b');
  const tried = [90_000, 80_000].map((agoMs, index) => silent(`t${index}`, { triedAtMs: NOW_MS - agoMs }));
  expect(chosen(machine('a'), machine('c'), machine('d'), ...tried, silent('new'))).toBe('new');
  expect(chosen(machine('a'), machine('c'), ...tried.toReversed())).toBe('t0');
});

it('switches off none before others have asked for as long as it is silent', () => {
  const machines = [machine('a'), silent('b')];
  const after = (sinceMs: number) => machineToSwitchOff(machines, { sinceMs, atMs: NOW_MS }, NOW_MS);
  expect(machineToSwitchOff(machines, undefined, NOW_MS)).toBeUndefined();
  expect(after(NOW_MS - SILENT_MS + 1)).toBeUndefined();
  expect(after(NOW_MS - SILENT_MS)).toBe('b');
});

it('counts a time in which half of the machines ask, and no look is late', () => {
  const asked = (...agoMs: readonly number[]) => agoMs.map((ago) => ({ askedAtMs: NOW_MS - ago }));
  const before = { sinceMs: 1, atMs: NOW_MS - HEARD_MS + 1 };
  const [late, old] = [{ ...before, atMs: NOW_MS - HEARD_MS }, HEARD_MS];
  const goesOn = { sinceMs: 1, atMs: NOW_MS };
  const anew = { sinceMs: NOW_MS, atMs: NOW_MS };
  expect(hearingAfter(before, asked(old - 1, old), NOW_MS)).toEqual(goesOn);
  expect(hearingAfter(late, asked(old - 1, old), NOW_MS)).toEqual(anew);
  expect(hearingAfter(undefined, asked(old - 1, old), NOW_MS)).toEqual(anew);
  expect(hearingAfter(before, asked(old - 1, old, old), NOW_MS)).toBeUndefined();
  expect(hearingAfter(before, [{ askedAtMs: undefined }], NOW_MS)).toBeUndefined();
});
