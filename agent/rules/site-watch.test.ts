import { describe, expect, it } from 'vitest';
import { isLate, isOverdue, nextWitness, siteView, type WatchedMachine } from './site-watch.ts';

const NEVER = Number.NEGATIVE_INFINITY;
const machine = (name: string, over: Partial<WatchedMachine> = {}): WatchedMachine => ({
  name,
  isConnected: true,
  answeredAtMs: 100_000,
  brokenAtMs: NEVER,
  excusedUntilMs: NEVER,
  isProbeable: true,
  silentSinceMs: undefined,
  ...over,
});
const silent = (name: string, over: Partial<WatchedMachine> = {}) =>
  machine(name, { answeredAtMs: 90_000, silentSinceMs: 93_500, ...over });
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

describe('a machine is overdue, and later late,', () => {
  /** When it becomes overdue, and late. */
  const missingFrom = (over: Partial<WatchedMachine>) => {
    const each = machine('n', over);
    const first = (holds: (atMs: number) => boolean): number => {
      let passedMs = 0;
      while (passedMs < 100_000 && !holds(100_000 + passedMs)) passedMs += 1;
      return passedMs;
    };
    return [first((atMs) => isOverdue(each, atMs)), first((atMs) => isLate(each, atMs))];
  };

  it('a tenth and half of a second after the beat that is missing', () => {
    expect(missingFrom({})).toEqual([1_100, 1_500]);
  });

  it('after its connection broke, and not later than without that', () => {
    expect(missingFrom({ isConnected: false, brokenAtMs: 100_300 })).toEqual([700, 1_300]);
    expect(missingFrom({ isConnected: false, brokenAtMs: 100_900 })).toEqual([1_100, 1_500]);
    expect(missingFrom({ brokenAtMs: 100_300 })).toEqual([1_100, 1_500]);
  });

  it('1.5 s after an answer to a probe without a connection', () => {
    expect(missingFrom({ isConnected: false, brokenAtMs: 99_000 })).toEqual([1_100, 1_500]);
  });

  it('after the silence that it announced', () => {
    expect(missingFrom({ isConnected: false, brokenAtMs: 100_000, excusedUntilMs: 130_000 })).toEqual([31_100, 31_500]);
  });
});

describe('what a relay may report', () => {
  const view = (machines: readonly WatchedMachine[]) => siteView(machines, 100_000);

  it('is the silent machines by name, up to a third of the site, the relay included', () => {
    expect(view([machine('b'), silent('a')])).toMatchObject({ kind: 'clear', silent: ['a'] });
    expect(view([...names(3).map((name) => machine(name)), silent('z'), silent('a')])).toMatchObject({
      kind: 'clear',
      silent: ['a', 'z'],
    });
    expect(view([...names(2).map((name) => machine(name)), silent('z'), silent('a')])).toEqual({ kind: 'tooMany' });
    expect(view([silent('a')])).toEqual({ kind: 'tooMany' });
  });

  it('counts machines that are late and not yet probed as silent', () => {
    const late = machine('l', { answeredAtMs: 97_000 });
    expect(view([machine('b'), silent('a'), late])).toEqual({ kind: 'tooMany' });
  });

  it('is not a machine that is overdue only: it is probed from elsewhere, unless many are', () => {
    const overdue = (name: string) => machine(name, { answeredAtMs: 98_900 });
    const others = [machine('b'), machine('c')];
    expect(view([...others, overdue('a')])).toEqual({ kind: 'clear', silent: [], suspected: ['a'] });
    expect(view([...others, overdue('a'), overdue('d')])).toEqual({ kind: 'clear', silent: [], suspected: [] });
    expect(view([...others, silent('a'), overdue('d')])).toEqual({ kind: 'clear', silent: ['a'], suspected: ['a'] });
  });

  it('is nothing of a machine that never answered a probe, or that announced its silence', () => {
    expect(view([machine('b'), silent('a', { isProbeable: false })])).toEqual({
      kind: 'clear',
      silent: [],
      suspected: [],
    });
    const asleep = names(9).map((name) => machine(name, { answeredAtMs: 0, excusedUntilMs: 100_001 }));
    expect(view([machine('b'), silent('z'), ...asleep])).toMatchObject({ kind: 'clear', silent: ['z'] });
  });

  it('is nothing when all others are silent', () => {
    expect(view([silent('a'), silent('b')])).toEqual({ kind: 'cutOff' });
  });
});

describe('the witness', () => {
  it('is each machine in turn, and never one that is late, away or not connected', () => {
    const machines = [
      machine('c'),
      machine('a'),
      silent('b'),
      machine('d', { isConnected: false }),
      machine('e', { excusedUntilMs: 200_000 }),
      machine('f'),
      machine('g', { answeredAtMs: 98_900 }),
    ];
    const asked = ['', 'a', 'c', 'f', 'zz'].map((previous) => nextWitness(machines, previous, 100_000));
    expect(asked).toEqual(['a', 'c', 'f', 'a', 'a']);
    expect(nextWitness([silent('b')], '', 100_000)).toBeUndefined();
  });
});
