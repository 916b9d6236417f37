import { describe, expect, it } from 'vitest';
import { type Condition, type Item, StoreFault } from './item-store.ts';
import {
  all,
  any,
  below,
  bytes,
  changeOf,
  flag,
  holds,
  is,
  json,
  lacks,
  mapped,
  namesOf,
  number,
  packable,
  present,
  readRow,
  text,
  word,
} from './layout.ts';
import { conditionHolds } from './writes/condition-holds.ts';

const seconds = number('S');
const ROW = {
  uid: present(text('u')),
  zone: text('z'),
  suspect: flag('s'),
  untilMs: mapped(seconds, {
    read: (value): number | undefined => (value === undefined ? undefined : value * 1_000),
    write: (value) => (value === undefined ? undefined : Math.ceil(value / 1_000)),
  }),
  untilSeconds: seconds,
};

describe('the attributes of a row', () => {
  it('reads values, and leaves out absent ones and those of another type', () => {
    expect(readRow(ROW, { u: 'a', S: 2, x: 1 })).toEqual({ uid: 'a', suspect: false, untilMs: 2_000, untilSeconds: 2 });
    expect('zone' in readRow(ROW, { u: 'a', z: 3 })).toBe(false);
    expect(readRow(ROW, { u: 'a', s: 1 }).suspect).toBe(true);
  });

  it('refuses a row without an attribute that every row has', () => {
    expect(() => readRow(ROW, { z: 'a' })).toThrow(StoreFault);
  });

  it('sets what has a stored form, and removes the rest', () => {
    expect(changeOf(ROW, { uid: 'a', suspect: false, zone: undefined, untilMs: 1_001 })).toEqual({
      set: { u: 'a', S: 2 },
      remove: ['z', 's'],
    });
    expect(changeOf(ROW, { suspect: true })).toEqual({ set: { s: 1 }, remove: [] });
  });

  it('removes an attribute whatever its form does with undefined', () => {
    const form = { read: String, write: (value: string) => value.trim() };
    expect(changeOf({ name: mapped(text('n'), form) }, { name: undefined })).toEqual({ set: {}, remove: ['n'] });
  });

  it('names each attribute once', () => {
    expect(namesOf(ROW)).toEqual(['u', 'z', 's', 'S']);
  });

  it('compares the stored form, and an absent one with its absence', () => {
    expect(holds(ROW.untilMs, 1_001)).toEqual({ kind: 'compare', attribute: 'S', op: '=', value: 2 });
    expect(holds(ROW.suspect, false)).toEqual({ kind: 'lacks', attribute: 's' });
  });
});

describe('kinds of attributes', () => {
  const data = new Uint8Array([1, 2]);
  it.each([
    ['text', text('a'), 'x', [7, true, data, undefined]],
    ['number', number('a'), 7, ['7', true, data, undefined]],
    ['bytes', bytes('a'), data, ['x', 7, undefined]],
    ['packable text', packable('a'), 'x', [7, true, undefined]],
    ['packable bytes', packable('a'), data, [7, true, undefined]],
  ])('%s has no value of another type', (_, attribute, value, others) => {
    expect(attribute.of({ a: value })).toEqual(value);
    expect(attribute.stored(value as never)).toEqual(value);
    for (const other of others) expect(attribute.of(other === undefined ? {} : { a: other })).toBeUndefined();
  });

  it('words and JSON are read as they were stored, or are absent', () => {
    const kind = word<'x' | 'y'>('w');
    expect([kind.of({ w: 'x' }), kind.of({}), kind.stored('y')]).toEqual(['x', undefined, 'y']);
    const list = json<readonly number[]>('j');
    expect(list.of({ j: '[1,2]' })).toEqual([1, 2]);
    expect([list.of({}), list.stored(undefined)]).toEqual([undefined, undefined]);
    expect(list.stored([1, 2])).toBe('[1,2]');
  });

  it('that every row has are stored like those that it may lack', () => {
    expect(present(text('a')).stored('x')).toBe('x');
    expect(() => present(text('a')).of({})).toThrow('a row without a');
  });
});

describe('conditions', () => {
  const holding = (condition: Condition, ...rows: Item[]) => rows.map((row) => conditionHolds(condition, row));

  it('hold when all of several do, or one of them', () => {
    const rows = [{ a: 1 }, { a: 1, b: 2 }, { a: 2, b: 2 }];
    const [one, other] = [is('a', 1), lacks('b')];
    expect(holding(all(one), ...rows)).toEqual([true, true, false]);
    expect(holding(all(one, other), ...rows)).toEqual([true, false, false]);
    expect(holding(any(is('a', 2), other), ...rows)).toEqual([true, false, true]);
  });

  it('hold below a number, and without one', () => {
    expect(holding(below(number('n'), 5), {}, { n: 4 }, { n: 5 })).toEqual([true, true, false]);
  });
});
