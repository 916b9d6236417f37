import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { reportWhileSlow } from './report-while-slow.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('prints nothing of what is done within two seconds, and then a line every two', () => {
  const lines: string[] = [];
  const done = reportWhileSlow('opening the database', (line) => void lines.push(line));
  vi.advanceTimersByTime(1_999);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(2_001);
  expect(lines).toEqual(['opening the database, 2 s so far', 'opening the database, 4 s so far']);
  done();
  vi.advanceTimersByTime(10_000);
  expect(lines).toHaveLength(2);
});
