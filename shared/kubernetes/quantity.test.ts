import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalQuantity, compareQuantities, formatQuantity, parseQuantity, type Quantity } from './quantity.ts';

function parsed(text: string): Quantity {
  const result = parseQuantity(text);
  if (result.kind !== 'parsed') throw new Error(`${text}: ${result.message}`);
  return result.quantity;
}

describe('quantities', () => {
  it.each([
    ['0', '0'],
    ['0Ki', '0'],
    ['4', '4'],
    ['3800m', '3800m'],
    ['1000m', '1'],
    ['0.5', '500m'],
    ['1.5', '1500m'],
    ['.25', '250m'],
    ['1.', '1'],
    ['100000', '100k'],
    ['123456', '123456'],
    ['8Gi', '8Gi'],
    ['1024Mi', '1Gi'],
    ['1536Mi', '1536Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['1000Ki', '1000Ki'],
    ['1.1Ki', '1126400m'],
    ['1e3', '1e3'],
    ['1E3', '1e3'],
    ['1e4', '10e3'],
    ['1e0', '1'],
    ['12e-1', '1200e-3'],
    ['1E', '1E'],
    ['2Ei', '2Ei'],
    ['-1.5', '-1500m'],
    ['+3', '3'],
    ['100n', '100n'],
    ['0.1n', '1n'],
    ['5u', '5u'],
  ])('writes %s as %s', (text, canonical) => {
    expect(canonicalQuantity(text)).toBe(canonical);
  });

  it('accepts JSON numbers', () => {
    expect(canonicalQuantity(2)).toBe('2');
    expect(canonicalQuantity(0.1)).toBe('100m');
  });

  it.each(['', ' ', 'x', '1x', '1KI', '1ki', '--1', '1.2.3', '1e', '1 Gi', '.', '1mm', '1e99', '1Gi5'])(
    'refuses %j',
    (text) => {
      expect(parseQuantity(text).kind).toBe('malformed');
      expect(canonicalQuantity(text)).toBe(text);
    },
  );

  it('compares across families', () => {
    expect(compareQuantities(parsed('1Gi'), parsed('1G'))).toBeGreaterThan(0);
    expect(compareQuantities(parsed('500m'), parsed('0.5'))).toBe(0);
    expect(compareQuantities(parsed('-1'), parsed('0'))).toBeLessThan(0);
  });

  it('caps what does not fit into 64 bits', () => {
    expect(compareQuantities(parsed('100E'), parsed('9223372036854775807'))).toBe(0);
  });

  it('keeps the value, and is canonical at once', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n }),
        fc.constantFrom('decimal', 'binary', 'exponent'),
        (nanos, format) => {
          const text = formatQuantity({ nanos, format } as Quantity);
          expect(parsed(text).nanos).toBe(nanos);
          expect(canonicalQuantity(text)).toBe(text);
        },
      ),
    );
  });
});
