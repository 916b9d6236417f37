import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { KubePod, LifecycleHandler } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { CommandResult } from '../../ports/pod-runtime.ts';
import type { HttpResult } from '../../ports/probe-client.ts';
import { ContainerHooks } from './container-hooks.ts';
import { PodProcesses } from './pod-processes.ts';
import { newRecord } from './pod-record.ts';
import { linuxProcesses } from './process-table.ts';

const pod: KubePod = {
  metadata: { name: 'p', uid: 'u1' },
  spec: { containers: [{ name: 'main', ports: [{ name: 'web', containerPort: 8080 }] }] },
};

function world(given: { result?: CommandResult; http?: HttpResult; hostIp?: string; podIp?: string } = {}) {
  const time = new SteppedTime(0);
  const asked: unknown[] = [];
  const dependencies = {
    time,
    log: silentLog,
    bootId: 'b',
    directory: tmpdir(),
    onChange() {},
    processTable: linuxProcesses,
  };
  const processes = new PodProcesses(newRecord(pod), dependencies);
  if (given.podIp !== undefined) processes.record.podIp = given.podIp;
  const [container] = processes.record.containers;
  if (container === undefined) throw new Error('no container');
  container.state = { kind: 'running', startedAtMs: 0 };
  const hooks = new ContainerHooks(processes, {
    time,
    engine: {
      async execute({ name }, words, { output }) {
        asked.push([name, ...words, output]);
        return given.result ?? { kind: 'exited', exitCode: 0, output: '' };
      },
    },
    hostIp: () => given.hostIp,
    probeClient: {
      async httpGet({ scheme, host, port, path }, timeoutMs) {
        asked.push(`${scheme}://${host}:${port}${path} ${timeoutMs}`);
        return given.http ?? { kind: 'answered', status: 500, body: '' };
      },
      tcpConnect: async () => undefined,
    },
  });
  const run = (hook: LifecycleHandler, mayWait = () => true) => hooks.run(container, hook, mayWait);
  return { time, asked, processes, container, run };
}

describe('a command as a hook', () => {
  it.each([
    [{ kind: 'exited' as const, exitCode: 0, output: 'x' }, undefined],
    [{ kind: 'exited' as const, exitCode: 3, output: 'x' }, 'exit code 3'],
    [{ kind: 'failed' as const, message: 'no shell' }, 'no shell'],
    [{ kind: 'timedOut' as const }, 'it did not end in time'],
  ])('ends as %j', async (result, why) => {
    const { run, asked } = world({ result });
    expect(await run({ exec: { command: ['a', 'b'] } })).toBe(why);
    expect(asked).toEqual([['main', 'a', 'b', 'log']]);
  });

  it('may be empty', async () => {
    const { run, asked } = world();
    await run({ exec: {} });
    expect(asked).toEqual([['main', 'log']]);
  });
});

describe('a request as a hook', () => {
  const hook = { httpGet: { port: 'web', path: '/stop' } };

  it.each([
    [{ podIp: '10.0.0.7', hostIp: '192.0.2.1' }, '10.0.0.7'],
    [{ podIp: '', hostIp: '192.0.2.1' }, '192.0.2.1'],
    [{ hostIp: '192.0.2.1' }, '192.0.2.1'],
    [{}, '127.0.0.1'],
  ])('is sent to the address of %j, and any answer is a success', async (given, host) => {
    const { run, asked } = world(given);
    expect(await run(hook)).toBeUndefined();
    expect(asked).toEqual([`http://${host}:8080/stop 30000`]);
  });

  it('fails without an answer, and without its port', async () => {
    expect(await world({ http: { kind: 'failed', message: 'refused' } }).run(hook)).toBe('refused');
    const { run, asked } = world();
    expect(await run({ httpGet: { port: 'none' } })).toContain('none');
    expect(asked).toEqual([]);
  });
});

describe('a sleep as a hook', () => {
  const ends = async (
    hook: LifecycleHandler,
    change?: (given: ReturnType<typeof world>) => void,
    mayWait = () => true,
  ) => {
    const given = world();
    let endedAtMs: number | undefined;
    void given.run(hook, mayWait).then(() => {
      endedAtMs = given.time.monotonicMs();
    });
    await given.time.pass(1_000);
    change?.(given);
    await given.time.pass(10_000);
    return endedAtMs;
  };

  it('lasts as long as it says', async () => {
    expect([await ends({ sleep: { seconds: 3 } }), await ends({ sleep: { seconds: 0 } }), await ends({})]).toEqual([
      3_000, 0, 0,
    ]);
  });

  it('ends when the container does, or when the wait is over', async () => {
    const terminated = { kind: 'waiting', reason: 'x' } as const;
    const end = ({ container, processes }: ReturnType<typeof world>) => {
      container.state = terminated;
      processes.wake();
    };
    expect(await ends({ sleep: { seconds: 3 } }, end)).toBe(1_000);
    let checks = 0;
    expect(await ends({ sleep: { seconds: 3 } }, undefined, () => ++checks < 3)).toBe(500);
  });
});
