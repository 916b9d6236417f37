import { describe, expect, it } from 'vitest';
import { lookupMemory } from './bounded-memory.ts';

interface Looked {
  readonly value: number | undefined;
}

const memoryOf = (entriesMax: number) => lookupMemory<Looked>(entriesMax, ({ value }) => value !== undefined);

describe('a memory of what was looked up', () => {
  it('says what was found last, whether it has come or gone since', () => {
    const memory = memoryOf(2);
    for (const value of [undefined, 1, undefined, 2]) {
      memory.keep('a', { value });
      expect(memory.find('a')).toEqual({ value });
    }
  });

  it('forgets the oldest of what is there, and of what is not, each for itself', () => {
    const memory = memoryOf(2);
    for (const key of ['a', 'b']) memory.keep(key, { value: 1 });
    for (const key of ['x', 'y', 'z']) memory.keep(key, { value: undefined });
    expect(['a', 'b', 'x', 'y', 'z'].filter((key) => memory.find(key) !== undefined)).toEqual(['a', 'b', 'y', 'z']);
    memory.keep('c', { value: 1 });
    expect(['a', 'b', 'c', 'y', 'z'].filter((key) => memory.find(key) !== undefined)).toEqual(['b', 'c', 'y', 'z']);
  });

  it('keeps nothing of what is gone in the place of what is there', () => {
    const memory = memoryOf(2);
    for (const key of ['a', 'b']) memory.keep(key, { value: 1 });
    memory.keep('b', { value: undefined });
    memory.keep('c', { value: 1 });
    expect(memory.find('a')).toEqual({ value: 1 });
  });
});
