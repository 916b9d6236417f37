import { Writable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { streamAnswer, throwUnlessOfStream } from './http-event.ts';

const HEAD = { status: 200, headers: {}, body: '' };
/** Beyond the time limit of a test. */
const NEVER_MS = 3_600_000;

beforeEach(() => {
  vi.stubGlobal('awslambda', { HttpResponseStream: { from: (stream: Writable) => stream } });
});
afterEach(() => {
  vi.unstubAllGlobals();
});

/** Lines without end, and whether their consumer has returned them. */
function endless() {
  const state = { sent: 0, isReturned: false };
  async function* lines() {
    try {
      for (;;) {
        state.sent += 1;
        yield 'x'.repeat(1_000);
      }
    } finally {
      state.isReturned = true;
    }
  }
  return { state, lines: lines() };
}

it('writes the lines of a response and ends it', async () => {
  const written: string[] = [];
  const out = new Writable({
    write(chunk, _, done) {
      written.push(String(chunk));
      done();
    },
  });
  async function* lines() {
    yield 'a\n';
    yield 'b\n';
  }
  await streamAnswer({ head: HEAD, lines: lines() }, out);
  expect(written.join('')).toBe('a\nb\n');
});

it('ends a response when the client accepts nothing within the bound', async () => {
  const { state, lines } = endless();
  const stuck = new Writable({ highWaterMark: 5_000, write: () => {} });
  await streamAnswer({ head: HEAD, lines }, stuck, 1);
  expect(state).toEqual({ sent: 5, isReturned: true });
  expect(stuck.destroyed).toBe(true);
});

it('ends a response after a write failed', async () => {
  const { state, lines } = endless();
  const broken = new Writable({ write: (_, __, done) => setImmediate(done, new Error('EPIPE')) });
  await streamAnswer({ head: HEAD, lines }, broken);
  expect(state.isReturned).toBe(true);
});

it('ends a response when the client does not accept its last bytes within the bound', async () => {
  async function* lines() {
    yield 'a\n';
  }
  const stuck = new Writable({ write: () => {} });
  await streamAnswer({ head: HEAD, lines: lines() }, stuck, 1);
  expect(stuck.destroyed).toBe(true);
});

it.each(['while it waits for the client', 'before its end'])(
  'ends a response at once when the connection closed %s',
  async (when) => {
    const stuck = new Writable({ highWaterMark: 5_000, write: () => {} });
    async function* lines() {
      yield 'x'.repeat(when === 'before its end' ? 1 : 5_000);
      stuck.destroy();
    }
    if (when !== 'before its end') setImmediate(() => stuck.destroy());
    await streamAnswer({ head: HEAD, lines: lines() }, stuck, NEVER_MS);
    expect(stuck.destroyed).toBe(true);
  },
);

it.each([
  ['no line', { ...HEAD }, 200],
  ['no permitted body', { ...HEAD, status: 204 }, 200],
])('an answer with %s has a byte, because the front may not notice its end otherwise', async (_, head, status) => {
  let begun = 0;
  const written: string[] = [];
  vi.stubGlobal('awslambda', {
    HttpResponseStream: {
      from: (stream: Writable, { statusCode }: { statusCode: number }) => {
        begun = statusCode;
        return stream;
      },
    },
  });
  const out = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      done();
    },
  });
  async function* lines(): AsyncGenerator<string> {}
  await streamAnswer({ head, lines: lines() }, out);
  expect([begun, written.join('')]).toEqual([status, ' ']);
});

it('writes each chunk in a turn of its own: a front that holds one chunk delivers the one before', async () => {
  let turn = 0;
  const turns: number[] = [];
  const out = new Writable({
    write(_chunk, _encoding, done) {
      turns.push(turn);
      done();
    },
  });
  const count = () => {
    turn += 1;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  async function* lines() {
    yield '{}\n';
    yield ' ';
  }
  await streamAnswer({ head: HEAD, lines: lines() }, out);
  clearImmediate(timer);
  expect(turns[1]).toBeGreaterThan(turns[0] ?? 0);
});

it('a rejection that nothing handles ends the process, unless it is of a stream that broke', async () => {
  const broken = new Error('socket hang up');
  const { lines } = endless();
  const stream = new Writable({ write: (_, __, done) => setImmediate(done, broken) });
  await streamAnswer({ head: HEAD, lines }, stream);
  expect(() => throwUnlessOfStream(broken)).not.toThrow();
  const other = new Error('socket hang up');
  expect(() => throwUnlessOfStream(other)).toThrow(other);
  expect(() => throwUnlessOfStream(undefined)).toThrow();
});
