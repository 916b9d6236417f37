import { expect, it } from 'vitest';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import { keepServed } from './keep-served.ts';

function listener(refusals: readonly string[]) {
  const time = new SteppedTime(0);
  const stop = new AbortController();
  const lines: string[] = [];
  const line = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const left = [...refusals];
  const state = { opens: 0, isOpen: false };
  const running = keepServed(
    {
      name: '/healthz',
      port: 10_248,
      open: async () => {
        state.opens += 1;
        const why = left.shift();
        if (why !== undefined) throw new Error(why);
        state.isOpen = true;
        return {
          close: async () => {
            state.isOpen = false;
          },
        };
      },
      time,
      log: { debug: () => {}, info: line, warn: line, error: line },
    },
    stop.signal,
  );
  return { time, stop, lines, state, running };
}

it('is open until it is stopped', async () => {
  const { stop, lines, state, running } = listener([]);
  await settle();
  expect(state.isOpen).toBe(true);
  stop.abort();
  await running;
  expect(state.isOpen).toBe(false);
  expect(lines).toEqual([]);
});

it('is opened once its port is free, and the fault is logged once per reason', async () => {
  const { time, stop, lines, state, running } = listener(['EADDRINUSE', 'EADDRINUSE', 'EACCES']);
  await settle();
  for (let round = 0; round < 3; round += 1) await time.pass(5_000);
  expect(state).toEqual({ opens: 4, isOpen: true });
  expect(lines).toEqual([
    '/healthz cannot be served; it is tried again {"port":10248,"why":"EADDRINUSE","waitMs":5000}',
    '/healthz cannot be served; it is tried again {"port":10248,"why":"EACCES","waitMs":5000}',
    '/healthz is served {"port":10248}',
  ]);
  stop.abort();
  await running;
});

it('ends while its port is in use', async () => {
  const { stop, running } = listener(Array(9).fill('EADDRINUSE'));
  await settle();
  stop.abort();
  await running;
});

it('is closed at once when it opens while it is stopped', async () => {
  const stop = new AbortController();
  let closed = 0;
  const open = async () => {
    stop.abort();
    return {
      close: async () => {
        closed += 1;
      },
    };
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  await keepServed({ name: '/healthz', port: 1, open, time: new SteppedTime(0), log }, stop.signal);
  expect(closed).toBe(1);
});
