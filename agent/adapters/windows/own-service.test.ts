import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryWindows } from '../../../test/support/memory-windows-native.ts';
import { until } from '../../../test/support/until.ts';
import { type OwnService, startOwnService } from './own-service.ts';
import { createService } from './service-database.ts';
import type { FromService } from './service-messages.ts';

const { memory, program } = memoryWindows();
const soon = { withinMs: 10_000, everyMs: 5 };

/** What the thread of a service does in these tests: it sends what it is asked to, and writes what it receives. */
const thread = (receivedFile: string): string => `
  const { parentPort, workerData } = require('node:worker_threads');
  const { appendFileSync } = require('node:fs');
  for (const message of workerData.sends) parentPort.postMessage(message);
  if (workerData.fails) throw new Error(workerData.fails);
  parentPort.on('message', (message) => {
    appendFileSync(${JSON.stringify(receivedFile)}, JSON.stringify(message) + '\\n');
    if (message.kind === 'limit') for (const each of workerData.later) parentPort.postMessage(each);
    if (message.kind === 'stopped') {
      if (workerData.answers) parentPort.postMessage({ kind: 'ended' });
      setImmediate(() => parentPort.close());
    }
  });
`;

let receivedFile: string;
let exitListeners: readonly unknown[];
beforeEach(() => {
  receivedFile = join(folderForTest(), 'received');
  writeFileSync(receivedFile, '');
  writeFileSync(join(program, 'service-worker.ts'), thread(receivedFile));
  exitListeners = process.listeners('exit');
});
const ownExitListeners = () => process.listeners('exit').filter((each) => !exitListeners.includes(each));
afterEach(() => {
  for (const listener of ownExitListeners()) process.off('exit', listener);
});

interface Script {
  readonly sends: readonly FromService[];
  /** When a preshutdown is allowed. */
  readonly later?: readonly FromService[];
  readonly answers?: boolean;
  readonly fails?: string;
}
const start = ({ later = [], answers = true, ...script }: Script) =>
  startOwnService({ ...script, later, answers } as object);
async function startAgent(script: Omit<Script, 'sends'> = {}): Promise<OwnService> {
  const started = await start({ ...script, sends: [{ kind: 'started', name: 'agent' }] });
  if (started.kind !== 'service') throw new Error(started.kind);
  return started.service;
}
const received = async (count: number): Promise<readonly unknown[]> => {
  const lines = () => readFileSync(receivedFile, 'utf8').trim().split('\n').filter(Boolean);
  await until(() => lines().length >= count, soon);
  return lines().map((line) => JSON.parse(line));
};

describe('this process as a service', () => {
  it('reads and writes the settings of the service that Windows has started', async () => {
    const service = await startAgent();
    createService({
      name: 'agent',
      displayName: 'x',
      description: 'x',
      commandLine: 'x',
      dependencies: [],
      preshutdownTimeoutMs: 10_000,
    });
    service.setPreshutdownTimeout(20_000);
    expect([service.name, service.preshutdownTimeoutMs(), service.dependencies(), service.readOrder()]).toEqual([
      'agent',
      20_000,
      [],
      [],
    ]);
    memory.windows.keys.set('SYSTEM\\CurrentControlSet\\Control', new Map());
    service.writeOrder(['agent', 'RpcSs']);
    expect(service.readOrder()).toEqual(['agent', 'RpcSs']);
    const list = { type: 7, bytes: Buffer.from('RpcSs\0\0', 'utf16le') };
    memory.windows.keys.set('SYSTEM\\CurrentControlSet\\Services\\agent', new Map([['DependOnService', list]]));
    expect(service.dependencies()).toEqual(['RpcSs']);
    await service.end(0);
  });

  it('is stopped by Windows', async () => {
    const service = await startAgent({ later: [{ kind: 'stop' }] });
    expect(service.stopRequested.aborted).toBe(false);
    service.allowPreshutdown(7);
    await until(() => service.stopRequested.aborted, soon);
    expect(await received(1)).toEqual([{ kind: 'limit', limitMs: 7 }]);
    await service.end(0);
  });

  it('learns of a shutdown of the machine, which is no stop', async () => {
    const service = await startAgent({ later: [{ kind: 'preshutdown' }] });
    service.allowPreshutdown(7);
    await service.preshutdown;
    expect(service.stopRequested.aborted).toBe(false);
    await service.end(0);
  });

  it('reports its end once, and waits until Windows knows it', async () => {
    const service = await startAgent();
    await Promise.all([service.end(3), service.end(4)]);
    expect(service.stopRequested.aborted).toBe(true);
    expect([await received(1), ownExitListeners()]).toEqual([[{ kind: 'stopped', exitCode: 3 }], []]);
  });

  it('leaves no wait behind when Windows knows its end', async () => {
    const service = await startAgent();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await service.end(0);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits no longer than 3 s for Windows', async () => {
    const service = await startAgent({ answers: false });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const ended = service.end(0);
      await vi.advanceTimersByTimeAsync(2_999);
      expect(service.stopRequested.aborted).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      await ended;
      expect(service.stopRequested.aborted).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('ends at once when it exits before Windows knows: its thread would hold it', async () => {
    await startAgent({ answers: false });
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    for (const listener of ownExitListeners()) listener.call(process, 0);
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGKILL']]);
    kill.mockRestore();
  });

  it('has a thread that keeps no process alive', async () => {
    const unref = vi.spyOn(Worker.prototype, 'unref');
    await start({ sends: [{ kind: 'notService' }] });
    expect(unref).toHaveBeenCalledTimes(1);
    unref.mockRestore();
  });

  it('is none, or says why it cannot be one', async () => {
    expect(await start({ sends: [{ kind: 'notService' }] })).toEqual({ kind: 'notService' });
    await expect(start({ sends: [{ kind: 'failed', message: 'refused' }] })).rejects.toThrow('refused');
    await expect(start({ sends: [], fails: 'no library' })).rejects.toThrow('no library');
    expect(ownExitListeners()).toEqual([]);
  });
});
