import { expect, it } from 'vitest';
import { machineToSwitchOff, type SiteMachine, SWITCH_AGAIN_MS } from './power-switch.rule.ts';

const NOW_MS = 1_000_000;
const machine = (name: string, more: Partial<SiteMachine> = {}): SiteMachine => ({
  ...{ name, isSilent: false, isReady: false, holdsPods: true, triedAtMs: undefined },
  ...more,
});
const silent = (name: string, more: Partial<SiteMachine> = {}): SiteMachine =>
  machine(name, { isSilent: true, ...more });
const chosen = (...machines: readonly SiteMachine[]) => machineToSwitchOff(machines, NOW_MS);

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
