import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FromService, ServiceOptions, ToService } from './service-messages.ts';

const STOP = 1;
const INTERROGATE = 4;
const PRESHUTDOWN = 15;
const HANDLE = 7n;

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.doUnmock('node:worker_threads');
  vi.doUnmock('./foreign.ts');
});

/** The thread over a service control manager in memory. */
async function startThread(options: ServiceOptions = {}, handle: bigint | null = HANDLE) {
  const sent: FromService[] = [];
  const statuses: Record<string, number>[] = [];
  const acts: string[] = [];
  const structs: Record<string, object> = {};
  const port = Object.assign(new EventEmitter(), {
    postMessage: (message: FromService) => void sent.push(message),
    close: () => void acts.push('port closed'),
  });
  type Callback = (...args: unknown[]) => unknown;
  const callbacks: Callback[] = [];
  let table: readonly { readonly name: string | null; readonly main: Callback | null }[] = [];
  let over: (error: Error | null, isServed: boolean) => void = () => undefined;
  let handler: Callback = () => undefined;
  const calls: Readonly<Record<string, unknown>> = {
    StartServiceCtrlDispatcherW: {
      async: (given: typeof table, done: typeof over) => {
        table = given;
        over = done;
      },
    },
    RegisterServiceCtrlHandlerExW: (name: string, given: Callback, context: null) => {
      acts.push(`handler of ${name}, context ${context}`);
      handler = given;
      return handle;
    },
    SetServiceStatus: (of: bigint, status: Record<string, number>) => {
      expect(of).toBe(HANDLE);
      statuses.push(status);
      return true;
    },
  };
  vi.doMock('node:worker_threads', () => ({ parentPort: port, workerData: options }));
  vi.doMock('./foreign.ts', () => ({
    foreign: () => ({
      struct: (name: string, members: object) => {
        structs[name] = members;
      },
      proto: () => undefined,
      pointer: () => undefined,
      register: (callback: Callback) => {
        callbacks.push(callback);
        return callback;
      },
      decode: (value: unknown, type: string) => (type === 'str16' ? String(value) : undefined),
    }),
    windowsLibraries: () => ({
      advapi32: { func: (declaration: string) => calls[/__stdcall (\w+)\(/.exec(declaration)?.[1] ?? ''] },
      lastError: () => 6,
    }),
  }));
  await import('./service-worker.ts');
  return {
    sent,
    statuses,
    acts,
    structs,
    run: () => table[0]?.main?.(1, 'agent'),
    table: () => table.map(({ name, main }) => [name, main !== null]),
    control: (control: number) => handler(control, 0, null, null),
    receive: (message: ToService) => port.emit('message', message),
    end: (error: Error | null, isServed: boolean) => over(error, isServed),
  };
}

async function startRunning(options: ServiceOptions = {}) {
  const thread = await startThread(options);
  thread.run();
  thread.sent.length = 0;
  thread.statuses.length = 0;
  return thread;
}

const RUNNING = { type: 0x10, state: 4, accepted: 0x101, exitCode: 0, specific: 0, checkPoint: 0, waitHint: 0 };
const pending = (checkPoint: number) => ({ ...RUNNING, state: 3, accepted: 0, checkPoint, waitHint: 5_000 });

describe('the thread of a service', () => {
  it('reports that the service runs, and accepts a stop and a preshutdown', async () => {
    const { run, table, statuses, sent, acts } = await startThread();
    expect([table(), sent, statuses]).toEqual([
      [
        ['', true],
        [null, false],
      ],
      [],
      [],
    ]);
    run();
    expect(acts).toEqual(['handler of agent, context null']);
    expect([statuses, sent]).toEqual([[RUNNING], [{ kind: 'started', name: 'agent' }]]);
  });

  it('declares what Windows reads', async () => {
    const { structs } = await startThread();
    const fields = ['type', 'state', 'accepted', 'exitCode', 'specific', 'checkPoint', 'waitHint'];
    expect(Object.entries(structs['ServiceStatus'] ?? {})).toEqual(fields.map((name) => [name, 'uint32']));
    expect(Object.keys(structs['ServiceEntry'] ?? {})).toEqual(['name', 'main']);
    expect(structs['ServiceEntry']).toMatchObject({ name: 'str16' });
  });

  it('reports a handler that Windows refuses, and no status', async () => {
    const { run, receive, statuses, sent } = await startThread({}, null);
    run();
    receive({ kind: 'stopped', exitCode: 1 });
    const message = 'RegisterServiceCtrlHandlerExW: error 6 of Windows';
    expect([sent, statuses]).toEqual([[{ kind: 'failed', message }], []]);
  });

  it.each([
    ['answers an interrogation', INTERROGATE, 0],
    ['does not know another control', 2, 120],
  ])('%s, and changes nothing', async (_, control, answer) => {
    const thread = await startRunning();
    expect(thread.control(control)).toBe(answer);
    expect([thread.statuses, thread.sent]).toEqual([[], []]);
  });

  it.each<[string, ServiceOptions, number | undefined, number, FromService['kind'], number]>([
    ['a stop, for 30 s', {}, 50_000, STOP, 'stop', 30],
    ['a preshutdown, as long as it was allowed', {}, 50_000, PRESHUTDOWN, 'preshutdown', 50],
    ['a preshutdown without a graceful one as a stop', {}, undefined, PRESHUTDOWN, 'stop', 30],
    ['the control that stands for it', { preshutdownControl: 200 }, 10_000, 200, 'preshutdown', 10],
    ['the true one beside that', { preshutdownControl: 200 }, 10_000, PRESHUTDOWN, 'preshutdown', 10],
  ])('passes on %s, with rising checkpoints', async (_, options, limitMs, control, kind, seconds) => {
    const thread = await startRunning(options);
    if (limitMs !== undefined) thread.receive({ kind: 'limit', limitMs });
    expect([thread.control(control), thread.statuses, thread.sent]).toEqual([0, [pending(1)], [{ kind }]]);
    vi.advanceTimersByTime(3_000);
    expect(thread.statuses).toEqual([1, 2, 3, 4].map(pending));
    vi.advanceTimersByTime(3_600_000);
    expect(thread.statuses).toHaveLength(seconds);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('passes on the first of two controls', async () => {
    const thread = await startRunning();
    expect([thread.control(STOP), thread.control(STOP), thread.control(PRESHUTDOWN)]).toEqual([0, 0, 0]);
    expect([thread.sent, thread.statuses]).toEqual([[{ kind: 'stop' }], [pending(1)]]);
  });

  it('reports the end of the agent, and no checkpoint after it', async () => {
    const thread = await startRunning();
    thread.control(STOP);
    thread.receive({ kind: 'stopped', exitCode: 3 });
    vi.advanceTimersByTime(10_000);
    expect(thread.statuses).toEqual([pending(1), { ...RUNNING, state: 1, accepted: 0, exitCode: 3 }]);
  });

  it.each<[string, Error | null, boolean, FromService]>([
    ['ends with the service', null, true, { kind: 'ended' }],
    ['ends at once in a program that is no service', null, false, { kind: 'notService' }],
    ['reports a call that failed', new Error('no memory'), false, { kind: 'failed', message: 'no memory' }],
  ])('%s', async (_, error, isServed, message) => {
    const { end, sent, acts } = await startThread();
    expect(acts).toEqual([]);
    end(error, isServed);
    expect([sent, acts]).toEqual([[message], ['port closed']]);
  });
});
