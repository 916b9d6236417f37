import { describe, expect, it } from 'vitest';
import { silentLog, silentMeter } from '../../../test/support/agent-api.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import { LOGIND_SHUTDOWN } from '../../rules/shutdown-start.ts';
import { GracefulShutdown, type ShutdownDependencies } from './graceful-shutdown.ts';
import { ShutdownPhase } from './shutdown-phase.ts';

/** Counts the current waits. */
class CountingTime extends SteppedTime {
  waiting = 0;

  override async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    this.waiting += 1;
    await super.sleep(milliseconds, signal);
    this.waiting -= 1;
  }
}

/** A node that shuts down, with one pod that terminates at once; `history` lists the steps in order. */
async function shuttingDown(over: Partial<ShutdownDependencies> = {}) {
  const time = new CountingTime(Date.UTC(2026, 0, 1));
  const stop = new AbortController();
  const history: string[] = [];
  const shutdown = new GracefulShutdown({
    phase: new ShutdownPhase(),
    buckets: [{ priority: 0, shutdownGracePeriodSeconds: 30 }],
    time,
    log: silentLog,
    meter: silentMeter,
    shutdownSignal: {
      rules: LOGIND_SHUTDOWN,
      delayMaxMs: async () => 30_000,
      raiseDelayMax: async () => {},
      hold: async () => ({ release: async () => void history.push('released') }),
      async *watch(signal) {
        yield true;
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      },
    },
    activePods: () => [{ metadata: { name: 'web' }, spec: { priority: 0 } }],
    killPod: async ({ metadata }) => void history.push(`kill ${metadata.name}`),
    recordEvent: () => {},
    reportStatus: async () => void history.push('status'),
    drainEvents: async () => void history.push('events'),
    stateFile: { read: async () => undefined, write: async () => {} },
    ...over,
  });
  const running = shutdown.run(stop.signal);
  for (let turn = 0; turn < 20; turn += 1) await settle();
  return { time, history, stop, running, shutdown };
}

describe('a shutdown with pods that terminate at once', () => {
  it('releases the lock after the last events, and leaves no timer', async () => {
    const { time, history, stop, running } = await shuttingDown();
    expect(history).toEqual(['status', 'kill web', 'events', 'released']);
    expect(time.waiting).toBe(0);
    stop.abort();
    await running;
  });

  it('releases the lock although the last events are never sent', async () => {
    const { time, history, stop, running } = await shuttingDown({ drainEvents: () => new Promise(() => {}) });
    expect(history).not.toContain('released');
    await time.pass(3_000);
    expect(history).toContain('released');
    stop.abort();
    await running;
  });

  it('releases the lock although the state file is never written', async () => {
    const stateFile = { read: async () => undefined, write: () => new Promise<void>(() => {}) };
    const { time, history, stop, running } = await shuttingDown({ stateFile });
    expect(history).not.toContain('released');
    await time.pass(2_000);
    expect(history).toContain('released');
    expect(time.waiting).toBe(0);
    stop.abort();
    await running;
  });

  it('rejects pods from then on', async () => {
    const { shutdown, stop, running } = await shuttingDown();
    expect(shutdown.phase.isShuttingDown).toBe(true);
    expect(shutdown.phase.admit().kind).toBe('refused');
    stop.abort();
    await running;
  });
});
