import { describe, expect, it } from 'vitest';
import {
  bytesOfMessage,
  CHANNELS,
  END_OF_INPUT,
  exitMessage,
  faultMessage,
  messageOf,
} from '../../../shared/sessions/channels.ts';
import type { SessionPurpose } from '../../../shared/sessions/session-request.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { PodPort } from '../../ports/pod-port.ts';
import type { LogQuery, PodRuntime, RunningCommand, RunningPod } from '../../ports/pod-runtime.ts';
import type { SessionConnection } from '../../ports/session-api.ts';
import { runSession } from './run-session.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const on = (channel: number, text: string) => bytesOfMessage({ channel, data: bytes(text) });

/** What one side writes, until it ends it. */
function stream() {
  const waiting: Uint8Array[] = [];
  let isEnded = false;
  let wake = (): void => {};
  return {
    write(text: string | Uint8Array) {
      waiting.push(typeof text === 'string' ? bytes(text) : text);
      wake();
    },
    end() {
      isEnded = true;
      wake();
    },
    async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
      for (;;) {
        const next = waiting.shift();
        if (next !== undefined) yield next;
        else if (isEnded) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    },
  };
}

function session(purpose: SessionPurpose, { pods = [] as Partial<RunningPod>[], runtime: own = {} } = {}) {
  const time = new SteppedTime(0);
  const [client, stdout, stderr, log, received] = [stream(), stream(), stream(), stream(), stream()];
  const closed = Promise.withResolvers<void>();
  const sent: Uint8Array[] = [];
  const seen: string[] = [];
  let isClosed = false;
  let isBlocked: PromiseWithResolvers<void> | undefined;
  const connection: SessionConnection = {
    async send(message) {
      if (!isClosed) sent.push(message);
      await isBlocked?.promise;
      return !isClosed;
    },
    close: () => {},
    destroy: () => {},
    closed: closed.promise,
    [Symbol.asyncIterator]: () => client[Symbol.asyncIterator](),
  };
  const exit = Promise.withResolvers<number>();
  const command: RunningCommand = {
    ...{ stdout, stderr, exitCode: exit.promise },
    write: async (data) => void seen.push(`in ${new TextDecoder().decode(data)}`),
    endInput: () => void seen.push('end'),
    resize: ({ columns, rows }) => void seen.push(`${columns}x${rows}`),
    kill: () => void seen.push('kill'),
  };
  const port: PodPort = {
    received,
    write: async (data) => void seen.push(`in ${new TextDecoder().decode(data)}`),
    endInput: () => void seen.push('end'),
    close: () => void seen.push('close'),
  };
  let stop: AbortSignal | undefined;
  const queries: LogQuery[] = [];
  const runtime: Pick<PodRuntime, 'open' | 'readLog' | 'pods'> = {
    open: async () => command,
    readLog(query, signal) {
      queries.push(query);
      stop = signal;
      signal?.addEventListener('abort', () => log.end());
      return log;
    },
    pods: async () => pods as RunningPod[],
    ...own,
  };
  let isOver = false;
  const connectPort = async (number: number, address: string | undefined) => {
    seen.push(`${address}:${number}`);
    return port;
  };
  void runSession(connection, { id: 's', podUid: 'u1', purpose } as never, { runtime, time, connectPort }).then(() => {
    isOver = true;
  });
  return {
    ...{ time, client, stdout, stderr, log, received, sent, seen, exit, queries },
    isOver: () => isOver,
    isStopped: () => stop?.aborted,
    block() {
      isBlocked = Promise.withResolvers();
      return isBlocked;
    },
    leave() {
      isClosed = true;
      client.end();
      closed.resolve();
    },
  };
}
const EXEC: SessionPurpose = { kind: 'exec', container: 'main', command: ['sh'], stdin: true, tty: false };
const texts = (sent: readonly Uint8Array[]) =>
  sent.map((each) => {
    const message = messageOf(each);
    return `${message?.channel} ${new TextDecoder().decode(message?.data)}`;
  });

describe('a command', () => {
  it('receives input, its end and sizes; what is no message is ignored', async () => {
    const { client, seen, leave, time } = session(EXEC);
    client.write(on(CHANNELS.stdin, 'a'));
    client.write(new Uint8Array());
    client.write(on(CHANNELS.resize, '{"Width":80,"Height":24}'));
    client.write(on(CHANNELS.resize, 'large'));
    client.write(on(CHANNELS.stdout, 'x'));
    client.write(bytesOfMessage(END_OF_INPUT));
    await time.pass(0);
    expect(seen).toEqual(['in a', '80x24', 'end']);
    leave();
    await time.pass(0);
  });

  it('without input receives none', async () => {
    const { client, seen, leave, time } = session({ ...EXEC, stdin: false });
    client.write(on(CHANNELS.stdin, 'a'));
    await time.pass(0);
    expect(seen).toEqual([]);
    leave();
    await time.pass(0);
    expect(seen).toEqual(['kill']);
  });

  it('sends its output in pieces of 32 KiB, and its exit code after all of it', async () => {
    const { stdout, stderr, exit, sent, isOver, time, seen } = session(EXEC);
    stdout.write(new Uint8Array(70_000));
    exit.resolve(7);
    await settle();
    stderr.write('late');
    await settle();
    expect(isOver()).toBe(false);
    stdout.end();
    stderr.end();
    await time.pass(0);
    expect(isOver()).toBe(true);
    expect(sent.slice(0, 3).map(({ length }) => length - 1)).toEqual([32_768, 32_768, 4_464]);
    expect(sent.slice(3)).toEqual([on(CHANNELS.stderr, 'late'), bytesOfMessage(exitMessage(7))]);
    expect(seen).toEqual(['kill']);
  });

  it('that leaves its output open ends two seconds after the last of it', async () => {
    const { stdout, exit, sent, isOver, time } = session(EXEC);
    exit.resolve(0);
    await time.pass(1_999);
    stdout.write('child');
    await time.pass(1);
    expect(isOver()).toBe(false);
    await time.pass(1_999);
    expect(isOver()).toBe(false);
    await time.pass(1);
    expect(isOver()).toBe(true);
    expect(texts(sent)[0]).toBe('1 child');
    expect(sent.at(-1)).toEqual(bytesOfMessage(exitMessage(0)));
  });

  it('waits for a client that reads slowly', async () => {
    const { stdout, exit, isOver, time, block } = session(EXEC);
    const blocked = block();
    stdout.write('much');
    exit.resolve(0);
    await time.pass(60_000);
    expect(isOver()).toBe(false);
    blocked.resolve();
    await time.pass(4_000);
    expect(isOver()).toBe(true);
  });

  it('is killed when the client leaves, and nothing more is sent', async () => {
    const { stdout, sent, seen, leave, time, isOver } = session(EXEC);
    leave();
    await time.pass(0);
    stdout.write('x');
    await time.pass(0);
    expect([isOver(), seen, sent]).toEqual([true, ['kill'], []]);
  });

  it('is killed when the client leaves after its exit', async () => {
    const { exit, seen, leave, time, isOver } = session(EXEC);
    exit.resolve(0);
    await time.pass(0);
    leave();
    await time.pass(0);
    expect([isOver(), seen]).toEqual([true, ['kill']]);
  });

  it('that cannot be opened is reported', async () => {
    const fails = session(EXEC, { runtime: { open: () => Promise.reject(new Error('no such container')) } });
    const none = session(EXEC, { runtime: { open: undefined } as never });
    await settle();
    await settle();
    expect(fails.sent).toEqual([bytesOfMessage(faultMessage('no such container'))]);
    expect(none.sent).toEqual([bytesOfMessage(faultMessage('this node runs no pods'))]);
  });
});

describe('the output of a container', () => {
  const ATTACH: SessionPurpose = { kind: 'attach', container: 'main', stdin: false };

  it('is followed from now on, until the container terminates', async () => {
    const { log, queries, sent, isOver, time } = session(ATTACH);
    log.write('tick');
    await time.pass(0);
    expect(queries).toEqual([
      { podUid: 'u1', container: 'main', previous: false, follow: true, timestamps: false, tailLines: 0 },
    ]);
    expect([texts(sent), isOver()]).toEqual([['1 tick'], false]);
    log.end();
    await time.pass(0);
    expect(sent.at(-1)).toEqual(bytesOfMessage(exitMessage(0)));
  });

  it('is no longer read when the client leaves', async () => {
    const { leave, isStopped, isOver, time } = session(ATTACH);
    await time.pass(0);
    expect(isStopped()).toBe(false);
    leave();
    await time.pass(0);
    expect([isStopped(), isOver()]).toEqual([true, true]);
  });

  it('is none of a runtime without output', async () => {
    const { sent, time } = session(ATTACH, { runtime: { readLog: undefined } as never });
    await time.pass(0);
    expect(sent).toEqual([bytesOfMessage(exitMessage(0))]);
  });
});

describe('a port of a pod', () => {
  const FORWARD: SessionPurpose = { kind: 'forward', port: 80 };
  const pods = [{ uid: 'u0', ip: '10.0.0.4' }, { uid: 'u1' }];

  it('is joined with the connection in both directions until the pod closes it', async () => {
    const { client, received, sent, seen, isOver, time } = session(FORWARD, { pods });
    client.write(on(CHANNELS.stdin, 'a'));
    client.write(on(CHANNELS.stdout, 'b'));
    client.write(bytesOfMessage(END_OF_INPUT));
    received.write('answer');
    await time.pass(0);
    expect(seen).toEqual(['undefined:80', 'in a', 'end']);
    expect([texts(sent), isOver()]).toEqual([['1 answer'], false]);
    received.end();
    await time.pass(0);
    expect(sent.at(-1)).toEqual(bytesOfMessage(exitMessage(0)));
    expect([seen.at(-1), isOver()]).toEqual(['close', true]);
  });

  it('is closed when the client leaves, also while the pod is silent', async () => {
    const { leave, seen, isOver, time } = session(FORWARD, { pods });
    await time.pass(0);
    leave();
    await time.pass(0);
    expect([seen.at(-1), isOver()]).toEqual(['close', true]);
  });

  it('must be one of a pod of this node', async () => {
    const { sent, time } = session(FORWARD, { pods: [{ uid: 'u0' }] });
    await time.pass(0);
    expect(sent).toEqual([bytesOfMessage(faultMessage('pod u1 is not known to this node'))]);
  });
});

it.each<[string, SessionPurpose]>([
  ['the output of a container', { kind: 'attach', container: 'main', stdin: false }],
  ['a port', { kind: 'forward', port: 80 }],
])('a session of %s ends with its client, without an exit code', async (_what, purpose) => {
  const { log, received, sent, isOver, leave, time } = session(purpose, { pods: [{ uid: 'u1', ip: '10.0.0.5' }] });
  leave();
  log.write('late');
  received.write('late');
  await time.pass(0);
  expect([isOver(), sent]).toEqual([true, []]);
});
