import { createHash } from 'node:crypto';
import { inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { StoreFault } from './item-store.ts';
import { OBJECT_DICTIONARY_1, packObjectText, packText, unpackText } from './packed-text.ts';

vi.mock('node:zlib', { spy: true });

const LONG = JSON.stringify({ kind: 'Node', status: { text: 'x'.repeat(2_000) } });

let forgotten = 0;
/** Two texts that are more than all that are kept. */
function forgetKept(): void {
  for (let text = 0; text < 2; text += 1) {
    forgotten += 1;
    packObjectText(`${forgotten}`.padEnd(2_500_000, ' '));
  }
}

describe('a compressed text', () => {
  it('is read back as it was written, whatever it was', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', minLength: 600, maxLength: 900 }),
      fc.json().map((text) => text.repeat(40)),
    );
    fc.assert(
      fc.property(fc.array(texts, { minLength: 20, maxLength: 20 }), (some) => {
        const packed = some.map(packObjectText);
        expect(packed.map(unpackText)).toEqual(some);
        forgetKept();
        expect(packed.map(unpackText)).toEqual(some);
      }),
      { numRuns: 5 },
    );
  });

  it('with half of a character is read as UTF-8 has it, whether it is kept or not', () => {
    const packed = packObjectText(`${LONG}\ud800`);
    expect([unpackText(packed), unpackText(packed)]).toEqual([`${LONG}\ufffd`, `${LONG}\ufffd`]);
  });

  it('stays a string if it is short', () => {
    expect(packObjectText('x'.repeat(700))).toBe('x'.repeat(700));
    expect(packObjectText(LONG)).toBeInstanceOf(Uint8Array);
  });

  it('depends on a dictionary that never changes', () => {
    const hash = createHash('sha256').update(OBJECT_DICTIONARY_1).digest('hex');
    expect(hash).toBe('835a79d24d2fb7ef63cc49e49f6c77217eff0984de0d9bdb3b6c431842bd62f6');
    expect(OBJECT_DICTIONARY_1.length).toBeLessThan(32_768);
  });

  it('is that of its own bytes, however often and in whatever order texts are read', () => {
    const textOf = (index: number) => LONG.replace('xx', `x${index}`);
    const packed = Array.from({ length: 20 }, (_, index) => packObjectText(textOf(index)));
    for (const order of [packed, packed.toReversed(), packed]) {
      for (const stored of order) expect(unpackText(stored)).toBe(textOf(packed.indexOf(stored)));
    }
    // The bytes of a text may be a part of a larger buffer, and later be overwritten.
    const buffer = new Uint8Array(2_000);
    for (const [index, stored] of packed.entries()) {
      buffer.set(stored as Uint8Array, 7);
      expect(unpackText(buffer.subarray(7, 7 + stored.length))).toBe(textOf(index));
    }
  });

  it('is not decompressed while it is kept, and once after many other texts', () => {
    const inflate = vi.mocked(inflateRawSync);
    inflate.mockClear();
    const packed = packObjectText(LONG);
    unpackText(packed);
    expect(inflate).not.toHaveBeenCalled();
    forgetKept();
    for (let time = 0; time < 3; time += 1) expect(unpackText(packed)).toBe(LONG);
    expect(inflate).toHaveBeenCalledTimes(1);
  });

  it('of an object is not displaced by texts of other records', () => {
    forgetKept();
    const packed = packObjectText(LONG);
    for (const record of ['a', 'b']) packText(record.padEnd(2_500_000, ' '));
    const inflate = vi.mocked(inflateRawSync);
    inflate.mockClear();
    expect(unpackText(packed)).toBe(LONG);
    expect(inflate).not.toHaveBeenCalled();
  });

  it('is refused when a newer release wrote it, or when it is damaged', () => {
    const packed = packObjectText(LONG) as Uint8Array;
    const refused = (stored: Uint8Array): unknown => {
      try {
        return unpackText(stored);
      } catch (fault) {
        return fault;
      }
    };
    for (const stored of [Uint8Array.of(2, ...packed.subarray(1)), packed.subarray(0, -4), new Uint8Array()]) {
      const fault = refused(stored);
      expect(fault).toBeInstanceOf(StoreFault);
      expect(fault).toMatchObject({ code: 'rejected', retryable: false });
    }
  });
});
