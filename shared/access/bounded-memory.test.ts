import { describe, expect, it } from 'vitest';
import { lookupMemory } from './bearer.ts';

interface Lookup {
  readonly value: number | undefined;
}

const memoryOf = (entriesMax: number) => lookupMemory<Lookup>(entriesMax, ({ value }) => value !== undefined);

describe('a cache of lookups', () => {
  it('returns the result of the last lookup, found or not', () => {
    const memory = memoryOf(2);
    for (const value of [undefined, 1, undefined, 2]) {
      memory.keep('a', { value });
      expect(memory.find('a')).toEqual({ value });
    }
  });

  it('drops the oldest entry of found and of failed lookups separately', () => {
    const memory = memoryOf(2);
    for (const key of ['a', 'b']) memory.keep(key, { value: 1 });
    for (const key of ['x', 'y', 'z']) memory.keep(key, { value: undefined });
    expect(['a', 'b', 'x', 'y', 'z'].filter((key) => memory.find(key) !== undefined)).toEqual(['a', 'b', 'y', 'z']);
    memory.keep('c', { value: 1 });
    expect(['a', 'b', 'c', 'y', 'z'].filter((key) => memory.find(key) !== undefined)).toEqual(['b', 'c', 'y', 'z']);
  });

  it('frees the place of an entry that no longer exists', () => {
    const memory = memoryOf(2);
    for (const key of ['a', 'b']) memory.keep(key, { value: 1 });
    memory.keep('b', { value: undefined });
    memory.keep('c', { value: 1 });
    expect(memory.find('a')).toEqual({ value: 1 });
  });
});
