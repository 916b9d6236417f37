import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { shutdownManager } from '../../app/shutdown-manager.ts';
import { WINDOWS } from '../../rules/shutdown-start.ts';
import { type WindowsService, windowsPreshutdown } from './preshutdown.ts';

class Service implements WindowsService {
  timeoutMs = 10_000;
  mostMs = 600_000;
  order: readonly string[] = ['x', 'rpc'];
  preshutdownTimeoutMs = async () => this.timeoutMs;
  setPreshutdownTimeout = async (timeoutMs: number) => {
    this.timeoutMs = Math.min(timeoutMs, this.mostMs);
  };
  dependencies = async () => ['rpc'];
  readPreshutdownOrder = async () => this.order;
  writePreshutdownOrder = async (order: readonly string[]) => {
    this.order = order;
  };
  preshutdown = async () => 'preshutdown' as const;
}

async function shutDown(service: WindowsService | undefined) {
  const errors: unknown[] = [];
  const told: string[] = [];
  const manager = shutdownManager({
    buckets: [{ priority: 0, shutdownGracePeriodSeconds: 30 }],
    platform: WINDOWS,
    shutdownSignal: windowsPreshutdown(service),
    time: new SteppedTime(0),
    log: { ...silentLog, error: (_message, fields) => errors.push(fields?.['error']) },
    meter: { count() {}, gauge() {}, observe() {} },
    activePods: () => [{ metadata: { name: 'p' } }],
    killPod: async (pod, graceSeconds) => {
      told.push(`kill ${pod.metadata.name} ${graceSeconds}`);
    },
    recordEvent: ({ message }) => told.push(message),
    reportStatus: async () => {},
    stateFile: { read: async () => undefined, write: async () => {} },
  });
  await manager.run(new AbortController().signal);
  return { errors, told };
}

describe('preshutdown of Windows', () => {
  it('raises the time-out, orders the services and ends the pods', async () => {
    const service = new Service();
    expect(await shutDown(service)).toEqual({
      errors: [],
      told: ['Shutdown manager detected preshutdown event', 'kill p 30'],
    });
    expect([service.timeoutMs, service.order]).toEqual([30_000, ['x', 'kubelet', 'rpc']]);
  });

  it('names both values when Windows does not grant the time', async () => {
    const service = new Service();
    service.mostMs = 20_000;
    const { errors, told } = await shutDown(service);
    expect(errors).toEqual([expect.stringMatching(/30s .*20s/)]);
    expect(told).toEqual([]);
  });

  it('needs to be a service', async () => {
    const { errors } = await shutDown(undefined);
    expect(errors).toEqual(['kubelet is NOT running as a Windows service']);
  });

  it('says what it could not do', async () => {
    const service = new Service();
    service.dependencies = () => Promise.reject(new Error('access denied'));
    const { errors } = await shutDown(service);
    expect(errors).toEqual(['Could not query the dependencies of the service: access denied']);
  });
});
