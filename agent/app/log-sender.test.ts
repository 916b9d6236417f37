import { describe, expect, it } from 'vitest';
import { LOG_CHUNK_BYTES_MAX } from '../../shared/kinds/pods/log-request.ts';
import { answered, scriptedApi, silentLog, timedOut } from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { type LogQuery, LogUnavailableError, type PodRuntime } from '../ports/pod-runtime.ts';
import { LogSender } from './log-sender.ts';

interface Chunk {
  readonly sequence: number;
  readonly data?: string;
  readonly end?: { readonly message?: string };
}
const stored = answered(200, { outcome: 'stored' });
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function world(readLog?: PodRuntime['readLog'], answer: (id: string, count: number) => KubeAnswer = () => stored) {
  const time = new SteppedTime(1_700_000_000_000);
  const listed: { ids: string[]; answers: KubeAnswer[] } = { ids: ['a'], answers: [] };
  const lists: number[] = [];
  const chunks: { readonly id: string; readonly atMs: number; readonly chunk: Chunk }[] = [];
  const errors: string[] = [];
  const stop = new AbortController();
  const api = scriptedApi(({ method, path, body }) => {
    if (method === 'GET') {
      lists.push(time.monotonicMs());
      const items = listed.ids.map((id) => ({ id, podUid: `pod-${id}`, container: 'main' }));
      return listed.answers.shift() ?? answered(200, { kind: 'NodeLogRequestList', items });
    }
    const id = path.split('/').at(-1) ?? '';
    chunks.push({ id, atMs: time.monotonicMs(), chunk: body as Chunk });
    return answer(id, chunks.length);
  });
  const sender = new LogSender({
    nodeName: 'n1',
    api,
    runtime: readLog === undefined ? {} : { readLog },
    time,
    fraction: () => 0.5,
    log: { ...silentLog, error: (message) => errors.push(message) },
    stop: stop.signal,
    compress: (bytes) => bytes,
  });
  const textOf = ({ data }: Chunk): string | undefined =>
    data === undefined ? undefined : Buffer.from(data, 'base64').toString();
  const sent = () => chunks.map(({ id, atMs, chunk }) => [id, atMs, chunk.sequence, textOf(chunk), chunk.end] as const);
  return { time, listed, lists, chunks, errors, stop, api, sender, sent };
}

/** A log that the test writes. */
function writtenLog() {
  const pieces: Uint8Array[] = [];
  let isEnded = false;
  let wake = Promise.withResolvers<void>();
  let closed = 0;
  const change = () => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  async function* readLog(_query: LogQuery, stop: AbortSignal): AsyncGenerator<Uint8Array> {
    stop.addEventListener('abort', change, { once: true });
    try {
      while (!stop.aborted) {
        const piece = pieces.shift();
        if (piece !== undefined) yield piece;
        else if (isEnded) return;
        else await wake.promise;
      }
    } finally {
      closed += 1;
    }
  }
  return {
    readLog,
    write: (text: string) => {
      pieces.push(bytesOf(text));
      change();
    },
    end: () => {
      isEnded = true;
      change();
    },
    closed: () => closed,
  };
}

describe('the output of a container', () => {
  it('is sent in one chunk with its end, if it is short', async () => {
    const log = writtenLog();
    log.write('one\n');
    log.write('two\n');
    log.end();
    const { sender, sent, time } = world(log.readLog);
    sender.requested();
    await time.pass(0);
    await sender.settled();
    expect(sent()).toEqual([['a', 0, 0, 'one\ntwo\n', {}]]);
    expect(log.closed()).toBe(1);
  });

  it('is sent while it is written: the first soon, later ones together, and a sign without any', async () => {
    const log = writtenLog();
    const { sender, sent, time } = world(log.readLog);
    log.write('a');
    sender.requested();
    await time.pass(99);
    expect(sent()).toEqual([]);
    await time.pass(1);
    log.write('b');
    await time.pass(300);
    log.write('c');
    await time.pass(200);
    expect(sent()).toEqual([
      ['a', 100, 0, 'a', undefined],
      ['a', 600, 1, 'bc', undefined],
    ]);
    await time.pass(5_000);
    // A sign has no number of its own.
    expect(sent().slice(2)).toEqual([['a', 5_600, 2, undefined, undefined]]);
    log.write('d');
    log.end();
    await time.pass(1_000);
    await sender.settled();
    expect(sent().slice(3)).toEqual([['a', 5_850, 2, 'd', {}]]);
  });

  it('begins with an empty chunk when there is none yet', async () => {
    const log = writtenLog();
    const { sender, sent, time, stop } = world(log.readLog);
    sender.requested();
    await time.pass(500);
    expect(sent()).toEqual([['a', 500, 0, '', undefined]]);
    await time.pass(5_000);
    expect(sent().slice(1)).toEqual([['a', 5_500, 1, undefined, undefined]]);
    stop.abort();
    log.end();
    await sender.settled();
  });

  it('is cut into full chunks, and not read further while one is full', async () => {
    const log = writtenLog();
    const whole = 'x'.repeat(LOG_CHUNK_BYTES_MAX + 10);
    log.write(whole);
    log.write('rest');
    log.end();
    const { sender, sent, time } = world(log.readLog);
    sender.requested();
    await time.pass(2_000);
    await sender.settled();
    expect(sent().map(([, atMs, sequence, text, end]) => [atMs, sequence, text?.length, end])).toEqual([
      [0, 0, LOG_CHUNK_BYTES_MAX, undefined],
      [250, 1, 14, {}],
    ]);
  });

  it.each([
    ['is not there', () => Promise.reject(new LogUnavailableError('no such container')), 'no such container'],
    ['cannot be read', () => Promise.reject(new Error('EIO')), 'the log cannot be read: EIO'],
  ])('that %s ends with a message', async (_what, next, message) => {
    const { sender, sent, time } = world(() => ({ [Symbol.asyncIterator]: () => ({ next }) }));
    sender.requested();
    await time.pass(0);
    await sender.settled();
    expect(sent()).toEqual([['a', 0, 0, undefined, { message }]]);
  });

  it('ends with a message on a node that runs no pods', async () => {
    const { sender, sent, time } = world();
    sender.requested();
    await time.pass(0);
    expect(sent()).toEqual([['a', 0, 0, undefined, { message: 'this node runs no pods' }]]);
  });

  it('is not sent for longer than a client may wait', async () => {
    const log = writtenLog();
    const { sender, chunks, time } = world(log.readLog);
    sender.requested();
    await time.pass(17 * 60_000);
    expect(chunks.at(-1)?.atMs).toBeLessThanOrEqual(16 * 60_000 + 5_000);
    expect(chunks.at(-1)?.atMs).toBeGreaterThan(15 * 60_000);
    log.end();
    await sender.settled();
  });
});

describe('a chunk', () => {
  const short = () => {
    const log = writtenLog();
    log.write('x');
    log.end();
    return log.readLog;
  };
  const busy: KubeAnswer = { kind: 'answered', status: 429, body: {}, retryAfterMs: 4_000 };

  it('is sent again with its number until the API has stored it', async () => {
    const answers = [timedOut, busy, answered(200, { outcome: 'notOpened' }), answered(500), stored];
    const { sender, sent, time } = world(short(), () => answers.shift() ?? stored);
    sender.requested();
    await time.pass(60_000);
    await sender.settled();
    // 1 s after no answer, 5 s as asked for, 0.5 s for a client that has not connected.
    expect(sent().map(([, atMs, sequence]) => [atMs, sequence])).toEqual([
      [0, 0],
      [1_000, 0],
      [6_000, 0],
      [6_500, 0],
      [7_500, 0],
    ]);
  });

  it('is the last one when the request has ended, or after twenty attempts', async () => {
    const ended = world(writtenLog().readLog, () => answered(404));
    ended.sender.requested();
    await ended.time.pass(60_000);
    await ended.sender.settled();
    expect(ended.chunks).toHaveLength(1);
    const lost = world(short(), () => timedOut);
    lost.sender.requested();
    await lost.time.pass(60_000);
    await lost.sender.settled();
    expect(lost.chunks).toHaveLength(20);
    expect(lost.chunks.at(-1)?.atMs).toBe(19_000);
  });

  it('is not sent again after a stop', async () => {
    const { sender, chunks, time, stop } = world(short(), () => timedOut);
    sender.requested();
    await time.pass(500);
    stop.abort();
    await sender.settled();
    expect(chunks).toHaveLength(1);
    sender.requested();
    await sender.settled();
    expect(chunks).toHaveLength(1);
  });
});

describe('the requests', () => {
  it('are answered once, also when they are listed again', async () => {
    const log = writtenLog();
    log.end();
    const { sender, sent, time, lists } = world(log.readLog);
    for (let round = 0; round < 3; round += 1) {
      sender.requested();
      await time.pass(1_000);
    }
    expect([lists.length, sent().length]).toEqual([3, 1]);
  });

  it('are listed once more when another one comes meanwhile', async () => {
    const { sender, time, lists } = world();
    sender.requested();
    sender.requested();
    sender.requested();
    await time.pass(0);
    await sender.settled();
    expect(lists).toHaveLength(2);
  });

  it('are listed four times when there is no answer, at least a second apart', async () => {
    const busy: KubeAnswer = { kind: 'answered', status: 503, body: {}, retryAfterMs: 2_000 };
    const { sender, time, lists, listed } = world();
    listed.answers = [timedOut, busy, answered(200, 'a page'), timedOut, timedOut];
    sender.requested();
    await time.pass(60_000);
    await sender.settled();
    expect(lists).toEqual([0, 1_000, 3_500, 4_500]);
  });

  it('are answered ten at once, and the others after one of them', async () => {
    const logs = Array.from({ length: 12 }, () => writtenLog());
    let next = 0;
    const { sender, time, listed, chunks } = world((...given) =>
      (logs[next++] ?? logs[0] ?? writtenLog()).readLog(...given),
    );
    listed.ids = Array.from({ length: 12 }, (_, index) => `r${index}`);
    sender.requested();
    await time.pass(2_000);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(10);
    logs[3]?.end();
    await time.pass(8_000);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(11);
    for (const log of logs) log.end();
    await time.pass(30_000);
    await sender.settled();
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(12);
  });

  it('that fail by themselves are reported, and affect no other', async () => {
    const log = writtenLog();
    log.write('x');
    log.end();
    let count = 0;
    const { sender, time, listed, errors, sent } = world((...given) => {
      count += 1;
      if (count === 1) throw new Error('broken');
      return log.readLog(...given);
    });
    listed.ids = ['bad', 'good'];
    sender.requested();
    await time.pass(10);
    await sender.settled();
    expect(errors).toEqual(['a log could not be sent']);
    expect(sent().map(([id]) => id)).toEqual(['good']);
  });

  it('are listed no more once the agent stops', async () => {
    const { sender, listed, lists, time, stop } = world();
    listed.answers = [timedOut, timedOut];
    sender.requested();
    await time.pass(0);
    stop.abort();
    await time.pass(10_000);
    await sender.settled();
    expect(lists).toHaveLength(1);
  });

  it('are known as answered up to 100: an older one is answered again', async () => {
    const log = writtenLog();
    log.end();
    const { sender, listed, sent, time } = world(log.readLog);
    const list = async (...ids: readonly string[]): Promise<void> => {
      listed.ids = [...ids];
      sender.requested();
      await time.pass(0);
      await sender.settled();
    };
    const ids = Array.from({ length: 101 }, (_, index) => `r${index}`);
    for (let first = 0; first < ids.length; first += 10) await list(...ids.slice(first, first + 10));
    expect(sent()).toHaveLength(101);
    await list('r1');
    expect(sent()).toHaveLength(101);
    await list('r0');
    expect(sent()).toHaveLength(102);
  });

  it('are answered although the reader of a log cannot be closed', async () => {
    const { sender, sent, errors, time } = world(() => ({
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: true, value: undefined }),
        return: () => Promise.reject(new Error('EIO')),
      }),
    }));
    sender.requested();
    await time.pass(0);
    await sender.settled();
    expect([sent().length, errors]).toEqual([1, []]);
  });
});
