import { describe, expect, it, onTestFinished } from 'vitest';
import {
  bytesOfMessage,
  CHANNELS,
  END_OF_INPUT,
  exitMessage,
  faultMessage,
} from '../../../shared/sessions/channels.ts';
import type { LineMessage, SessionPurpose } from '../../../shared/sessions/session-request.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import type { PodPort } from '../../ports/pod-port.ts';
import type { PodRuntime, RunningCommand, RunningPod } from '../../ports/pod-runtime.ts';
import type { SessionConnection, SessionOpening } from '../../ports/session-api.ts';
import { SessionLine } from './session-line.ts';

const SOON = { withinMs: 5_000, everyMs: 1 };
const text = (value: string) => new TextEncoder().encode(value);

/** One side of a connection; the test is the other. */
function connection() {
  const sent: Uint8Array[] = [];
  const waiting: Uint8Array[] = [];
  const closed = Promise.withResolvers<void>();
  let isClosed = false;
  let wake = (): void => {};
  const close = (): void => {
    isClosed = true;
    closed.resolve();
    wake();
  };
  const side: SessionConnection = {
    async send(message) {
      if (!isClosed) sent.push(message);
      return !isClosed;
    },
    close,
    destroy: close,
    closed: closed.promise,
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = waiting.shift();
        if (next !== undefined) yield next;
        else if (isClosed) return;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
  return {
    side,
    sent,
    isClosed: () => isClosed,
    receive(message: Uint8Array) {
      waiting.push(message);
      wake();
    },
  };
}

const POD: RunningPod = {
  uid: 'u1',
  namespace: 'default',
  name: 'web',
  ip: '10.0.0.5',
  containers: [{ name: 'main', restartCount: 0, state: { kind: 'running', startedAtMs: 0 } }],
};

async function* outputOf(...pieces: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield text(piece);
}

/** An agent with one running container. Its command writes `out` and `err`, and exits when `exit` is called. */
function agent(refusal?: SessionOpening) {
  const time = new SteppedTime(0);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const line = connection();
  const sessions = new Map<string, ReturnType<typeof connection>>();
  const opened: string[] = [];
  const written: string[] = [];
  const exit = Promise.withResolvers<number>();
  let isKilled = false;
  const command: RunningCommand = {
    stdout: outputOf('out'),
    stderr: outputOf('err'),
    async write(bytes) {
      written.push(new TextDecoder().decode(bytes));
    },
    endInput: () => void written.push('end'),
    resize: ({ columns, rows }) => void written.push(`${columns}x${rows}`),
    exitCode: exit.promise,
    kill() {
      isKilled = true;
    },
  };
  const runtime: Pick<PodRuntime, 'pods' | 'onChange' | 'open' | 'readLog'> = {
    pods: async () => [POD],
    onChange() {},
    open: async () => command,
    readLog: () => outputOf('tick\n'),
  };
  const port: PodPort = {
    received: outputOf('answer'),
    async write(bytes) {
      written.push(new TextDecoder().decode(bytes));
    },
    endInput: () => void written.push('end'),
    close: () => void written.push('close'),
  };
  const dependencies = {
    nodeName: 'n1',
    time,
    fraction: () => 1,
    log: silentLog,
    stop: stop.signal,
    runtime,
    connectPort: async (number: number, address: string | undefined) => {
      written.push(`${address}:${number}`);
      return port;
    },
    sessionApi: {
      async open(path: string): Promise<SessionOpening> {
        opened.push(path);
        if (refusal !== undefined) return refusal;
        const id = path.split('/')[6];
        if (id === undefined) return { kind: 'opened', connection: line.side };
        const session = connection();
        sessions.set(id, session);
        return { kind: 'opened', connection: session.side };
      },
    },
  };
  void new SessionLine(dependencies).run();
  const tell = (message: LineMessage): void => line.receive(text(JSON.stringify(message)));
  return {
    time,
    opened,
    written,
    exit,
    tell,
    isKilled: () => isKilled,
    async session(purpose: SessionPurpose, podUid = 'u1') {
      tell({ session: { id: 's1', podUid, purpose } });
      return until(() => sessions.get('s1'), { ...SOON, what: 'a session' });
    },
  };
}

const EXEC: SessionPurpose = { kind: 'exec', container: 'main', command: ['sh'], stdin: true, tty: true };
const output = (channel: number, value: string) => bytesOfMessage({ channel, data: text(value) });
const faultOf = (session: ReturnType<typeof connection>) =>
  until(() => session.sent.at(-1), { ...SOON, what: 'a message' });

describe('the line of an agent', () => {
  it('brings a command, which is joined with a connection of its own', async () => {
    const { session, opened, written, exit, isKilled } = agent();
    const { receive, sent, isClosed } = await session(EXEC);
    expect(opened).toEqual([
      '/apis/nodekeeper.dev/v1alpha1/nodesessions/n1',
      '/apis/nodekeeper.dev/v1alpha1/nodesessions/n1/s1',
    ]);
    receive(output(CHANNELS.stdin, 'in'));
    receive(output(CHANNELS.resize, '{"Width":80,"Height":24}'));
    receive(output(CHANNELS.resize, '{"Width":"$(rm)","Height":24}'));
    receive(bytesOfMessage(END_OF_INPUT));
    await until(() => written.length === 3, SOON);
    expect(written).toEqual(['in', '80x24', 'end']);
    exit.resolve(3);
    await until(isClosed, SOON);
    expect(sent).toEqual([
      output(CHANNELS.stdout, 'out'),
      output(CHANNELS.stderr, 'err'),
      bytesOfMessage(exitMessage(3)),
    ]);
    expect(isKilled()).toBe(true);
  });

  it('ends a command when its session is closed', async () => {
    const { session, tell, isKilled } = agent();
    await session(EXEC);
    tell({ ended: 'other' });
    expect(isKilled()).toBe(false);
    tell({ ended: 's1' });
    await until(isKilled, SOON);
  });

  it('attaches to output, and refuses input', async () => {
    const { session } = agent();
    const first = await session({ kind: 'attach', container: 'main', stdin: false });
    await until(first.isClosed, SOON);
    expect(first.sent).toEqual([output(CHANNELS.stdout, 'tick\n'), bytesOfMessage(exitMessage(0))]);
    const second = await agent().session({ kind: 'attach', container: 'main', stdin: true });
    expect(await faultOf(second)).toEqual(
      bytesOfMessage(faultMessage('container main has no input on this node: attach shows its output only')),
    );
  });

  it('connects to a port at the address of the pod', async () => {
    const { session, written } = agent();
    const forward: SessionPurpose = { kind: 'forward', port: 80 };
    const { sent, isClosed } = await session(forward);
    await until(isClosed, SOON);
    expect(sent).toEqual([output(CHANNELS.stdout, 'answer'), bytesOfMessage(exitMessage(0))]);
    expect(written).toEqual(['10.0.0.5:80', 'close']);
    expect(await faultOf(await agent().session(forward, 'u2'))).toEqual(
      bytesOfMessage(faultMessage('pod u2 is not known to this node')),
    );
  });

  it('is tried once per hour where it is not served', async () => {
    const { time, opened } = agent({ kind: 'refused', status: 404 });
    await until(() => time.waits.length > 0, SOON);
    expect([opened.length, time.waits]).toEqual([1, [3_600_000]]);
  });
});

describe('a line', () => {
  const EXITED: RunningPod = {
    ...POD,
    containers: [
      {
        name: 'main',
        restartCount: 0,
        state: { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs: 0, finishedAtMs: 1 },
      },
    ],
  };

  /** A line of an agent with these pods. `changed` is called when a container changes. */
  function lineOf(pods: () => Promise<readonly RunningPod[]>, onOpen = (_stop: AbortController): void => {}) {
    const time = new SteppedTime(0);
    const stop = new AbortController();
    const lines: ReturnType<typeof connection>[] = [];
    let changed = (_podUid: string): void => {};
    const runtime: Pick<PodRuntime, 'pods' | 'onChange'> = {
      pods,
      onChange(listener) {
        changed = listener;
      },
    };
    const running = new SessionLine({
      nodeName: 'n1',
      time,
      fraction: () => 1,
      log: silentLog,
      stop: stop.signal,
      runtime,
      connectPort: () => Promise.reject(new Error('no port')),
      sessionApi: {
        async open(): Promise<SessionOpening> {
          const line = connection();
          lines.push(line);
          onOpen(stop);
          return { kind: 'opened', connection: line.side };
        },
      },
    }).run();
    return { time, stop, lines, running, changed: () => changed('u1') };
  }

  it('is open while a container runs', async () => {
    let pods: readonly RunningPod[] = [EXITED];
    const { time, lines, changed, stop, running } = lineOf(async () => pods);
    await until(() => time.waits.length > 0, SOON);
    expect(lines).toHaveLength(0);
    pods = [POD];
    changed();
    await until(() => lines.length === 1, SOON);
    changed();
    await time.pass(0);
    expect(lines[0]?.isClosed()).toBe(false);
    pods = [EXITED];
    changed();
    await until(() => lines[0]?.isClosed(), SOON);
    await until(() => time.waits.length > 1, SOON);
    expect(lines).toHaveLength(1);
    stop.abort();
    await running;
  });

  it('is not needed while the pods cannot be read', async () => {
    const { time, lines, stop, running } = lineOf(() => Promise.reject(new Error('no runtime')));
    await until(() => time.waits.length > 0, SOON);
    expect(lines).toHaveLength(0);
    stop.abort();
    await running;
  });

  it('that is opened while the agent stops is closed', async () => {
    const { lines, stop, running } = lineOf(
      async () => [POD],
      (given) => given.abort(),
    );
    await running;
    expect([stop.signal.aborted, lines.map((each) => each.isClosed())]).toEqual([true, [true]]);
  });

  it('and its sessions are closed when the agent stops', async () => {
    const { lines, stop, running } = lineOf(async () => [POD]);
    await until(() => lines.length === 1, SOON);
    lines[0]?.receive(text(JSON.stringify({ session: { id: 's1', podUid: 'u1', purpose: EXEC } })));
    await until(() => lines.length === 2, SOON);
    stop.abort();
    await running;
    await until(() => lines.every((each) => each.isClosed()), SOON);
  });
});

describe('the sessions of a line', () => {
  /** A line. `openings` yields what the API answers to each open; absent: another connection. */
  function line(openings: (opened: number) => SessionOpening | undefined = () => undefined) {
    const time = new SteppedTime(0);
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const paths: string[] = [];
    const connections: ReturnType<typeof connection>[] = [];
    const runtime: Pick<PodRuntime, 'pods' | 'onChange' | 'open'> = {
      pods: async () => [POD],
      onChange() {},
      open: async () => ({
        stdout: outputOf(),
        stderr: outputOf(),
        write: async () => {},
        endInput() {},
        resize() {},
        exitCode: new Promise<number>(() => {}),
        kill() {},
      }),
    };
    const sessionApi = {
      async open(path: string): Promise<SessionOpening> {
        paths.push(path);
        const answer = openings(paths.length);
        if (answer !== undefined) return answer;
        const opened = connection();
        connections.push(opened);
        return { kind: 'opened', connection: opened.side };
      },
    };
    const parts = { nodeName: 'n1', time, fraction: () => 1, log: silentLog, stop: stop.signal };
    const connectPort = () => Promise.reject(new Error('no port'));
    const running = new SessionLine({ ...parts, runtime, connectPort, sessionApi }).run();
    const request = (...ids: readonly string[]): void => {
      for (const id of ids)
        connections[0]?.receive(text(JSON.stringify({ session: { id, podUid: 'u1', purpose: EXEC } })));
    };
    const end = (id: string): void => connections[0]?.receive(text(JSON.stringify({ ended: id })));
    return { time, stop, paths, connections, request, end, running };
  }
  const numbered = (total: number): string[] => Array.from({ length: total }, (_, index) => `s${index}`);

  it('are at most 400 at once', async () => {
    const { time, paths, request, end } = line();
    await time.pass(0);
    request(...numbered(401));
    await time.pass(0);
    expect(paths).toHaveLength(1 + 400);
    request('late');
    await time.pass(0);
    expect(paths).toHaveLength(1 + 400);
    end('s7');
    await time.pass(0);
    request('later');
    await time.pass(0);
    expect(paths.slice(1 + 400)).toEqual(['/apis/nodekeeper.dev/v1alpha1/nodesessions/n1/later']);
  });

  const FAILURES: readonly SessionOpening[] = [
    { kind: 'refused', status: 404 },
    { kind: 'failed', cause: new Error('reset') },
  ];
  it.each(FAILURES)(
    'continue after one that could not be opened ($kind), which leaves its place free',
    async (failure) => {
      const { time, paths, connections, request } = line((opened) =>
        opened > 1 && opened < 402 ? failure : undefined,
      );
      await time.pass(0);
      request(...numbered(400));
      await time.pass(0);
      request('good');
      await time.pass(0);
      expect([paths.length, connections.length]).toEqual([402, 2]);
    },
  );

  it('continue after a message of another form', async () => {
    const { time, connections, request } = line();
    await time.pass(0);
    connections[0]?.receive(text('{"other":1}'));
    request('s1');
    await time.pass(0);
    expect(connections).toHaveLength(2);
  });

  it('are closed when they open while the agent stops, or when they fail', async () => {
    const opened = connection();
    const stopped = line((count) => {
      if (count < 2) return undefined;
      stopped.stop.abort();
      return { kind: 'opened', connection: opened.side };
    });
    await stopped.time.pass(0);
    stopped.request('s1');
    await stopped.running;
    await until(opened.isClosed, SOON);
    const failing = connection();
    const side: SessionConnection = {
      ...failing.side,
      send: () => Promise.reject(new Error('no connection')),
      [Symbol.asyncIterator]: () => failing.side[Symbol.asyncIterator](),
    };
    const { time, request, connections } = line((count) =>
      count === 2 ? { kind: 'opened', connection: side } : undefined,
    );
    await time.pass(0);
    connections[0]?.receive(
      text(JSON.stringify({ session: { id: 's1', podUid: 'u1', purpose: { kind: 'forward', port: 80 } } })),
    );
    await until(failing.isClosed, SOON);
    request('s2');
    await time.pass(0);
    expect(connections).toHaveLength(2);
  });

  it('wait longer after each line that ends at once', async () => {
    const { time, stop, paths } = line((count) => {
      const closed = connection();
      closed.side.close();
      // Otherwise an agent without waits would never return here.
      if (count === 50) stop.abort();
      return { kind: 'opened', connection: closed.side };
    });
    await time.pass(15_000);
    expect(time.waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000]);
    expect(paths).toHaveLength(5);
  });

  it('wait longer after each failure of the line, anew after a line that lasted, and not when the agent stops', async () => {
    const { time, stop, connections, running } = line((count) => (count === 4 ? undefined : FAILURES[1]));
    await time.pass(3_000);
    expect(time.waits).toEqual([1_000, 2_000, 4_000]);
    await time.pass(4_000 + 10_000);
    connections[0]?.side.close();
    await time.pass(1_000);
    expect(time.waits).toEqual([1_000, 2_000, 4_000, 1_000, 2_000]);
    stop.abort();
    await running;
  });
});
