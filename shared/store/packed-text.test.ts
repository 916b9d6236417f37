import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StoreFault } from '../ports/item-store.ts';
import { OBJECT_DICTIONARY_1 } from './object-dictionary.ts';
import { packText, unpackText } from './packed-text.ts';

const LONG = JSON.stringify({ kind: 'Node', status: { text: 'x'.repeat(2_000) } });

describe('a compressed text', () => {
  it('is read back as it was written, whatever it was', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', minLength: 600, maxLength: 900 }),
      fc.json().map((text) => text.repeat(40)),
    );
    fc.assert(
      fc.property(texts, fc.constantFrom('compressed' as const, 'plain' as const), (text, format) => {
        expect(unpackText(packText(text, format))).toBe(text);
      }),
    );
  });

  it('stays a string if it is short, or while older releases run', () => {
    expect(packText('x'.repeat(700), 'compressed')).toBe('x'.repeat(700));
    expect(packText(LONG, 'plain')).toBe(LONG);
    expect(packText(LONG, 'compressed')).toBeInstanceOf(Uint8Array);
  });

  it('depends on a dictionary that never changes', () => {
    const hash = createHash('sha256').update(OBJECT_DICTIONARY_1).digest('hex');
    expect(hash).toBe('835a79d24d2fb7ef63cc49e49f6c77217eff0984de0d9bdb3b6c431842bd62f6');
    expect(OBJECT_DICTIONARY_1.length).toBeLessThan(32_768);
  });

  it('is refused when a newer release wrote it, or when it is damaged', () => {
    const packed = packText(LONG, 'compressed') as Uint8Array;
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
