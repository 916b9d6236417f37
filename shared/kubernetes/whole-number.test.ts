import { describe, expect, it } from 'vitest';
import { INT64_MAX, parseInt64, parseUint64 } from './whole-number.ts';

describe('whole numbers as text', () => {
  it.each([
    ['0', 0],
    ['-0', 0],
    ['+5', 5],
    ['-1', -1],
    ['007', 7],
    ['9007199254740993', Number.MAX_SAFE_INTEGER],
    ['9223372036854775807', Number.MAX_SAFE_INTEGER],
    ['-9223372036854775808', -Number.MAX_SAFE_INTEGER],
    [`${'0'.repeat(50)}3`, 3],
  ])('reads %s', (text, value) => {
    expect(parseInt64(text)).toEqual({ kind: 'parsed', value });
  });

  it.each(['', ' 1', '1.5', '1e3', 'abc', 'NaN', '0x10', '٣'])('has no number in %j', (text) => {
    const message = `parsing ${JSON.stringify(text)}: invalid syntax`;
    expect(parseInt64(text)).toEqual({ kind: 'malformed', message: `strconv.ParseInt: ${message}` });
    expect(parseUint64(text)).toEqual({ kind: 'malformed', message: `strconv.ParseUint: ${message}` });
  });

  it.each(['9223372036854775808', '-9223372036854775809', '9'.repeat(400)])('says that %s is out of range', (text) => {
    expect(parseInt64(text)).toMatchObject({ message: `strconv.ParseInt: parsing "${text}": value out of range` });
  });

  it('reads versions up to the largest uint64', () => {
    expect(parseUint64('18446744073709551615')).toEqual({ kind: 'parsed', value: Number.MAX_SAFE_INTEGER });
    expect(parseUint64('18446744073709551616')).toMatchObject({ kind: 'malformed' });
    expect(parseUint64('-1')).toMatchObject({ kind: 'malformed' });
  });

  it('writes its largest number as an int64', () => {
    expect(BigInt(JSON.stringify(INT64_MAX)) < 2n ** 63n).toBe(true);
    expect(Number(JSON.stringify(INT64_MAX))).toBe(INT64_MAX);
  });
});
