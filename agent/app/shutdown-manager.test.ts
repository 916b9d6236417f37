import { describe, expect, it } from 'vitest';
import { silentLog } from '../../test/support/agent-api.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import { type ShutdownDependencies, shutdownManager } from './shutdown-manager.ts';

/** Counts the waits that are not over. */
class CountingTime extends SteppedTime {
  waiting = 0;

  override async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    this.waiting += 1;
    await super.sleep(milliseconds, signal);
    this.waiting -= 1;
  }
}

/** A node that is going down, with one pod that ends at once; `history` is what was done, in order. */
async function goingDown(over: Partial<ShutdownDependencies> = {}) {
  const time = new CountingTime(Date.UTC(2026, 0, 1));
  const stop = new AbortController();
  const history: string[] = [];
  const manager = shutdownManager({
    buckets: [{ priority: 0, shutdownGracePeriodSeconds: 30 }],
    time,
    log: silentLog,
    meter: { count() {}, gauge() {}, observe() {} },
    shutdownSignal: {
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
  const running = manager.run(stop.signal);
  for (let turn = 0; turn < 20; turn += 1) await settle();
  return { time, history, stop, running, manager };
}

describe('a shutdown whose pods end at once', () => {
  it('releases the lock after the last events, and no timer of it is left', async () => {
    const { time, history, stop, running } = await goingDown();
    expect(history).toEqual(['status', 'kill web', 'events', 'released']);
    expect(time.waiting).toBe(0);
    stop.abort();
    await running;
  });

  it('releases the lock though the last events are never sent', async () => {
    const { time, history, stop, running } = await goingDown({ drainEvents: () => new Promise(() => {}) });
    expect(history).not.toContain('released');
    await time.pass(3_000);
    expect(history).toContain('released');
    stop.abort();
    await running;
  });

  it('releases the lock though the state file is never written', async () => {
    const stateFile = { read: async () => undefined, write: () => new Promise<void>(() => {}) };
    const { time, history, stop, running } = await goingDown({ stateFile });
    expect(history).not.toContain('released');
    await time.pass(2_000);
    expect(history).toContain('released');
    expect(time.waiting).toBe(0);
    stop.abort();
    await running;
  });

  it('refuses pods from then on', async () => {
    const { manager, stop, running } = await goingDown();
    expect(manager.shuttingDown()).toBe(true);
    expect(manager.admit().kind).toBe('refused');
    stop.abort();
    await running;
  });
});
