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

describe('the watch for a shutdown', () => {
  /** `watches`: what each attempt announces before it ends, or the error that it fails with. */
  function watching(watches: readonly (readonly boolean[] | Error)[], rules = LOGIND_SHUTDOWN) {
    const steps: string[] = [];
    const errors: string[] = [];
    let attempts = 0;
    const shutdownSignal: ShutdownDependencies['shutdownSignal'] = {
      rules,
      delayMaxMs: async () => 30_000,
      raiseDelayMax: async () => {},
      async hold() {
        steps.push('hold');
        return { release: async () => void steps.push('release') };
      },
      async *watch(signal) {
        const watch = watches[attempts];
        attempts += 1;
        if (watch instanceof Error) throw watch;
        yield* watch ?? [];
        if (watch === undefined)
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      },
    };
    let loads = 0;
    return {
      ...{ steps, errors, attempts: () => attempts, loads: () => loads },
      over: {
        shutdownSignal,
        log: {
          ...silentLog,
          error: (message: string, fields = {}) =>
            void errors.push(`${message}: ${(fields as { error: string }).error}`),
        },
        stateFile: {
          async read() {
            loads += 1;
            return undefined;
          },
          write: async () => {},
        },
      } satisfies Partial<ShutdownDependencies>,
    };
  }
  const broken = new Error('no bus');

  it('is off without a grace period for pods', async () => {
    const { steps, over } = watching([]);
    const { running } = await shuttingDown({ ...over, buckets: [] });
    await running;
    expect(steps).toEqual([]);
  });

  it('is given up, and the lock released, when it cannot start', async () => {
    const { steps, errors, over, attempts } = watching([broken]);
    const { running, time } = await shuttingDown(over);
    await running;
    await time.pass(60_000);
    expect([steps, attempts()]).toEqual([['hold', 'release'], 1]);
    expect(errors).toEqual(['Failed to start node shutdown manager: failed to monitor shutdown: no bus']);
  });

  it('starts again after a second each time that it ends or fails later', async () => {
    const { steps, errors, over, attempts, loads } = watching([[], broken]);
    const { running, time, stop } = await shuttingDown(over);
    expect(attempts()).toBe(1);
    await time.pass(999);
    expect(attempts()).toBe(1);
    await time.pass(1);
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect(attempts()).toBe(2);
    expect(errors).toEqual(['Unable to watch the node for shutdown events: failed to monitor shutdown: no bus']);
    await time.pass(1_000);
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect([attempts(), loads()]).toEqual([3, 1]);
    // The next lock is acquired before the one before is released.
    expect(steps).toEqual(['hold', 'hold', 'release', 'release', 'hold']);
    stop.abort();
    await running;
    expect(steps.at(-1)).toBe('release');
    expect(attempts()).toBe(3);
  });

  it('starts again after it failed once it had begun, and names that fault', async () => {
    const { over, errors } = watching([]);
    let attempts = 0;
    const shutdownSignal: ShutdownDependencies['shutdownSignal'] = {
      ...over.shutdownSignal,
      async *watch() {
        attempts += 1;
        yield false;
        throw broken;
      },
    };
    const { running, stop, time } = await shuttingDown({ ...over, shutdownSignal });
    await time.pass(1_000);
    for (let turn = 0; turn < 20; turn += 1) await settle();
    stop.abort();
    await running;
    expect(attempts).toBe(2);
    expect(errors).toEqual([
      'Failed to start node shutdown manager: no bus',
      'Unable to watch the node for shutdown events: no bus',
    ]);
  });

  it('terminates no pod for a shutdown that is announced while the agent stops', async () => {
    const stopped = watching([]);
    const announce = Promise.withResolvers<void>();
    const shutdownSignal: ShutdownDependencies['shutdownSignal'] = {
      ...stopped.over.shutdownSignal,
      async *watch() {
        await announce.promise;
        yield true;
      },
    };
    const { running, stop, history } = await shuttingDown({ ...stopped.over, shutdownSignal });
    stop.abort();
    announce.resolve();
    await running;
    expect(history).toEqual([]);
  });

  it('does not start again while the agent stops', async () => {
    const { over, attempts } = watching([[]]);
    const { running, stop } = await shuttingDown(over);
    stop.abort();
    await running;
    expect(attempts()).toBe(1);
  });

  it('does not start again on a system that announces a shutdown once', async () => {
    const { over, attempts, steps } = watching([[true]], { ...LOGIND_SHUTDOWN, restarts: false });
    const { running, time } = await shuttingDown(over);
    await running;
    await time.pass(60_000);
    expect([attempts(), steps]).toEqual([1, ['hold', 'release']]);
  });

  it('accepts pods again, and holds the lock, when the shutdown is cancelled', async () => {
    const events: string[] = [];
    const { over, steps } = watching([[true, false]]);
    const { shutdown, stop, running } = await shuttingDown({
      ...over,
      recordEvent: ({ message }) => events.push(message),
    });
    expect([shutdown.phase.isShuttingDown, shutdown.phase.admit().kind]).toEqual([false, 'admitted']);
    expect(events.at(-1)).toBe('Shutdown manager detected shutdown cancellation');
    expect(steps).toEqual(['hold', 'release', 'hold']);
    stop.abort();
    await running;
  });

  it('releases the lock although the shutdown cannot be reported, or the last events cannot be sent', async () => {
    const { over, errors, steps } = watching([[true]]);
    const reportStatus = () => {
      throw new Error('no Node');
    };
    const { stop, running } = await shuttingDown({ ...over, reportStatus });
    expect(errors).toEqual(['Failed to report the shutdown: no Node']);
    expect(steps).toEqual(['hold', 'release']);
    stop.abort();
    await running;
    const failing = watching([[true]]);
    const drainEvents = () => Promise.reject(new Error('no API'));
    const other = await shuttingDown({ ...failing.over, drainEvents });
    expect(failing.errors).toEqual(['Failed to send the last events: no API']);
    expect(failing.steps).toEqual(['hold', 'release']);
    other.stop.abort();
    await other.running;
  });
});
