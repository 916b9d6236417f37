import { expect, it } from 'vitest';
import { gaugeSeconds, readShutdownState, shutdownStateText } from './shutdown-state.ts';

const AT_MS = Date.UTC(2026, 0, 1, 12);

it('the times of a shutdown are read as they were written', () => {
  for (const times of [
    { startedAtMs: AT_MS, endedAtMs: AT_MS + 1_500 },
    { startedAtMs: AT_MS + 7, endedAtMs: undefined },
    { startedAtMs: undefined, endedAtMs: undefined },
  ])
    expect(readShutdownState(shutdownStateText(times))).toEqual(times);
});

it('times have the form of Go, with as many digits as they need', () => {
  const text = (startedAtMs: number | undefined) => JSON.parse(shutdownStateText({ startedAtMs, endedAtMs: AT_MS }));
  expect([AT_MS, AT_MS + 1, AT_MS + 20, AT_MS + 300].map((ms) => text(ms).startTime)).toEqual([
    '2026-01-01T12:00:00Z',
    '2026-01-01T12:00:00.001Z',
    '2026-01-01T12:00:00.02Z',
    '2026-01-01T12:00:00.3Z',
  ]);
  expect(text(undefined)).toEqual({ startTime: '0001-01-01T00:00:00Z', endTime: '2026-01-01T12:00:00Z' });
});

it.each(['', '{', 'null', '7', '{"startTime":"soon"}', '{"endTime":7}', '{"startTime":null}'])(
  'the text %j is none',
  (text) => {
    expect(readShutdownState(text)).toBeUndefined();
  },
);

it('an absent time is unset, and a gauge shows whole seconds', () => {
  expect(readShutdownState('{}')).toEqual({ startedAtMs: undefined, endedAtMs: undefined });
  expect([gaugeSeconds(1_999), gaugeSeconds(2_000)]).toEqual([1, 2]);
});
