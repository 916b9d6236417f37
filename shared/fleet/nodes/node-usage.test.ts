import { expect, it } from 'vitest';
import { parseUsage, usageText } from './node-usage.ts';

const usage = { cpuCores: 0.25, memoryBytes: 1_932_735_283, windowSeconds: 60, atSeconds: 1_767_225_600 };

it('reads what it writes, in a few bytes', () => {
  expect(usageText(usage)).toBe('0.250 1932735283 60 1767225600');
  expect(parseUsage(usageText(usage))).toEqual(usage);
});

it.each([undefined, '', '1 2 3 4', '-0.100 1 60 1', '0.100 1 60', 'NaN 1 60 1', `0.100 ${'9'.repeat(16)} 60 1`])(
  'ignores %j',
  (text) => {
    expect(parseUsage(text)).toBeUndefined();
  },
);
