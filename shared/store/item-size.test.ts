import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { itemBytes, valueBytes } from './item-size.ts';
import { compareKeys } from './item-store.ts';

describe('sizes', () => {
  it.each([
    ['an empty string', '', 0],
    ['zero', 0, 2],
    ['a resourceVersion', 1_795_197_026_123_456, 9],
    ['a negative fraction', -12.5, 4],
    ['true', true, 1],
    ['a number with a zero inside', 101, 3],
    ['an empty list', [], 3],
    ['a list', ['abc', [true]], 3 + (1 + 3) + (1 + 3 + 1 + 1)],
    ['a map', { ab: 'cde' }, 3 + 1 + 2 + 3],
  ])('weighs %s', (_, value, bytes) => {
    expect(valueBytes(value)).toBe(bytes);
  });

  it('adds names and values', () => {
    expect(itemBytes({ pk: 's01', sk: 'edge-1', v: 17 })).toBe(2 + 3 + 2 + 6 + 1 + 2);
  });
});

describe('the order of keys', () => {
  it('is that of UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        expect(Math.sign(compareKeys(one, other))).toBe(Buffer.compare(Buffer.from(one), Buffer.from(other)));
      }),
    );
  });
});
