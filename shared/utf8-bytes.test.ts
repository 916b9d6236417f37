import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8Bytes } from './text.ts';

describe('bytes of a text in UTF-8', () => {
  it('are as many as an encoder writes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(utf8Bytes(text)).toBe(Buffer.byteLength(text));
      }),
    );
  });
});
