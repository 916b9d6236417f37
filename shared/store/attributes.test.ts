import { describe, expect, it } from 'vitest';
import { changeOf, flag, holds, mapped, namesOf, number, present, readRow, text } from './attributes.ts';
import { StoreFault } from './item-store.ts';

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

  it('names each attribute once', () => {
    expect(namesOf(ROW)).toEqual(['u', 'z', 's', 'S']);
  });

  it('compares the stored form, and an absent one with its absence', () => {
    expect(holds(ROW.untilMs, 1_001)).toEqual({ kind: 'compare', attribute: 'S', op: '=', value: 2 });
    expect(holds(ROW.suspect, false)).toEqual({ kind: 'lacks', attribute: 's' });
  });
});
