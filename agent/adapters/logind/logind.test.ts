import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import dbus from '@particle/dbus-next';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Log } from '../../../shared/observability/log.ts';
import { silentLog, silentMeter } from '../../../test/support/agent-api.ts';
import { MockSystemBus, missingPackages } from '../../../test/support/mock-system-bus.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { until } from '../../../test/support/until.ts';
import { GracefulShutdown } from '../../app/shutdown/graceful-shutdown.ts';
import { ShutdownPhase } from '../../app/shutdown/shutdown-phase.ts';
import { SleepWatch } from '../../app/sleep-watch.ts';
import { readShutdown } from '../doctor/measure.ts';
import { type Logind, logind } from './logind.ts';

const missing = missingPackages();
const why = missing.length === 0 ? '' : ` (skipped: not installed: ${missing.join(', ')})`;
const LOCK = 'shutdown|kubelet|Kubelet needs time to handle node shutdown|delay';
const SLEEP_LOCK = 'sleep|nodekeeper-agent|The cluster must know that this machine sleeps|delay';
const withinMs = 10_000;

/** Process ids of the children of this process. Each thread lists its own. */
const children = (): string[] =>
  readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );

describe.skipIf(missing.length > 0)(`logind on a bus of its own${why}`, () => {
  let bus: MockSystemBus;
  let root: string;
  const opened: Logind[] = [];
  const stops: AbortController[] = [];

  const open = (log: Log = silentLog): Logind => {
    const opening = logind({ log, busAddress: bus.address, root, timeoutMs: 5_000, pingIntervalMs: 100 });
    opened.push(opening);
    return opening;
  };
  const stopSignal = (): AbortSignal => {
    const controller = new AbortController();
    stops.push(controller);
    return controller.signal;
  };

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'nodekeeper-logind-'));
    bus = await MockSystemBus.start(5_000);
  });
  afterEach(() => {
    for (const stop of stops.splice(0)) stop.abort();
    for (const each of opened.splice(0)) each.close();
  });
  afterAll(async () => {
    await bus?.stop();
    rmSync(root, { recursive: true });
  });

  /** Reads what is announced into a list; `ended` resolves with the watch. */
  async function listen(to: Logind) {
    const heard: boolean[] = [];
    const watch = to.watch(stopSignal());
    const ended = (async () => {
      for await (const preparing of watch) heard.push(preparing);
    })();
    // Signals sent before the subscription may be lost.
    await until(
      async () => {
        if (heard.length > 0) return true;
        await bus.announce(['b', false]);
        return false;
      },
      { withinMs, everyMs: 50 },
    );
    const seen = heard.length;
    return { heard: () => heard.slice(seen).filter((preparing) => preparing), ended };
  }

  it('reads the delay', async () => {
    await bus.grantDelay(5_000);
    expect(await open().delayMaxMs()).toBe(5_000);
    expect(await readShutdown(bus.address)).toEqual({ kind: 'logind', delayMaxMs: 5_000 });
  });

  it('holds a lock that logind lists, until it is released, and again', async () => {
    const lock = await open().hold();
    expect(await bus.locks()).toEqual([LOCK]);
    await lock.release();
    await lock.release();
    await until(async () => (await bus.locks()).length === 0, { withinMs });
  });

  it('loses the lock when the agent is killed', async () => {
    const contents = `import { logind } from './logind.ts';
      const log = { debug() {}, info() {}, warn() {}, error() {} };
      void logind({ log, busAddress: ${JSON.stringify(bus.address)} }).hold();
      setInterval(() => {}, 1_000);`;
    // Bundled: Node runs no TypeScript below node_modules, where mutation runs have their copy of the tree.
    const outfile = join(root, 'agent.cjs');
    const stdin = { contents, resolveDir: import.meta.dirname };
    await build({ stdin, bundle: true, platform: 'node', external: ['x11'], outfile });
    const agent = spawn(process.execPath, [outfile], { stdio: 'ignore' });
    try {
      await until(async () => (await bus.locks()).length === 1, { withinMs: 30_000 });
    } finally {
      agent.kill('SIGKILL');
    }
    await until(async () => (await bus.locks()).length === 0, { withinMs });
  });

  it('receives the start of a shutdown, and ignores a signal without a boolean', async () => {
    const warnings: string[] = [];
    const logindHere = open({ ...silentLog, warn: (message) => warnings.push(message) });
    const { heard } = await listen(logindHere);
    await bus.announce();
    await bus.announce(['s', 'true']);
    await bus.announce(['b', true]);
    await until(() => heard().length === 1, { withinMs });
    expect(warnings).toHaveLength(2);
  });

  it('does not believe others on the bus', async () => {
    const { heard } = await listen(open());
    const stranger = dbus.sessionBus({ busAddress: bus.address, authMethods: ['EXTERNAL'] });
    try {
      await new Promise<void>((resolve) => stranger.on('connect', resolve));
      const forged = () =>
        dbus.Message.newSignal('/org/freedesktop/login1', 'org.freedesktop.login1.Manager', 'PrepareForShutdown', 'b', [
          true,
        ]);
      stranger.send(forged());
      // To each alone, too: what is sent by name passes the match rules.
      const names = await stranger.call(
        new dbus.Message({
          destination: 'org.freedesktop.DBus',
          path: '/org/freedesktop/DBus',
          interface: 'org.freedesktop.DBus',
          member: 'ListNames',
        }),
      );
      const everybody: string[] = names?.body[0] ?? [];
      for (const name of everybody) {
        if (!name.startsWith(':')) continue;
        const direct = forged();
        direct.destination = name;
        stranger.send(direct);
      }
      await stranger.call(
        new dbus.Message({
          destination: 'org.freedesktop.DBus',
          path: '/org/freedesktop/DBus',
          interface: 'org.freedesktop.DBus',
          member: 'GetId',
        }),
      );
    } finally {
      stranger.disconnect();
    }
    // The genuine signal is sent last. If a forged one was received, there are more.
    await bus.announce(['b', true]);
    await until(() => heard().length > 0, { withinMs });
    expect(heard()).toHaveLength(1);
  });

  it('writes the drop-in and has logind read it', async () => {
    await open().raiseDelayMax(30_000);
    const file = join(root, 'etc/systemd/logind.conf.d/99-kubelet.conf');
    expect(readFileSync(file, 'utf8')).toMatch(/^# .*\n\[Login\]\nInhibitDelayMaxSec=30\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o644);
    expect(await bus.killedUnits()).toContainEqual(['systemd-logind.service', 'all', 1]);
  });

  it('ends the watch when its lock is lost, and another lock is acquired', async () => {
    const here = open();
    const before = children();
    const lock = await here.hold();
    const { ended } = await listen(here);
    const [holder] = children().filter((pid) => !before.includes(pid));
    // A signal to process 0 would reach the runner of the tests.
    if (holder === undefined) throw new Error('no child holds the lock');
    process.kill(Number(holder), 'SIGKILL');
    await ended;
    await lock.release();
  });

  it('releases the lock when the pods are terminated, and acquires it again after a cancellation', async () => {
    const killed: string[] = [];
    const events: string[] = [];
    const gauges = new Map<string, number>();
    let pods = 1;
    const shutdown = new GracefulShutdown({
      phase: new ShutdownPhase(),
      buckets: [{ priority: 0, shutdownGracePeriodSeconds: 30 }],
      shutdownSignal: open(),
      time: realTime,
      log: silentLog,
      meter: { ...silentMeter, gauge: (name, value) => gauges.set(name, value) },
      activePods: () =>
        Array.from({ length: pods }, (_, index) => ({ metadata: { name: `p${index}` }, spec: { priority: 0 } })),
      killPod: async (pod, graceSeconds) => {
        killed.push(`${pod.metadata.name} ${graceSeconds} ${(await bus.locks()).length}`);
        pods = 0;
      },
      recordEvent: ({ message }) => events.push(message),
      reportStatus: async () => {},
      drainEvents: async () => {},
      stateFile: { read: async () => undefined, write: async () => {} },
    });
    await bus.grantDelay(5_000);
    const asked = (await bus.killedUnits()).length;
    const stop = new AbortController();
    const running = shutdown.run(stop.signal);
    try {
      // The system grants 5 s, and 30 s are needed: they are requested and granted.
      await until(async () => (await bus.killedUnits()).length > asked, { withinMs, everyMs: 20 });
      await bus.grantDelay(30_000);
      await until(async () => (await bus.locks()).length === 1, { withinMs });
      await until(
        async () => {
          if (shutdown.phase.isShuttingDown) return true;
          await bus.announce(['b', true]);
          return false;
        },
        { withinMs },
      );
      await until(async () => (await bus.locks()).length === 0, { withinMs });
      expect(killed).toEqual(['p0 30 1']);
      expect(shutdown.phase.admit()).toMatchObject({ kind: 'refused', reason: 'NodeShutdown' });
      await bus.announce(['b', false]);
      await until(async () => (await bus.locks()).length === 1, { withinMs });
      expect(shutdown.phase.admit()).toEqual({ kind: 'admitted' });
      expect(events.at(0)).toBe('Shutdown manager detected shutdown event');
      expect(events.at(-1)).toBe('Shutdown manager detected shutdown cancellation');
    } finally {
      stop.abort();
      await running;
    }
    await until(async () => (await bus.locks()).length === 0, { withinMs });
  });

  it('delays a suspend until the promise is stored, and holds the lock again after the resume', async () => {
    const sleepSignal = logind({ log: silentLog, busAddress: bus.address, event: 'sleep', timeoutMs: 5_000 });
    opened.push(sleepSignal);
    const requests: { readonly body: unknown; readonly locks: readonly string[] }[] = [];
    let stored = (): void => undefined;
    let resumes = 0;
    const watch = new SleepWatch({
      nodeName: 'n1',
      plannedSilenceOnSleepSeconds: 3_600,
      sleepSignal,
      api: {
        async send({ body }) {
          requests.push({ body, locks: await bus.locks() });
          await new Promise<void>((resolve) => {
            stored = resolve;
          });
          return { kind: 'answered', status: 200, body: {}, headers: {} };
        },
      },
      time: realTime,
      log: silentLog,
      onSuspend: () => {},
      onResume: () => {
        resumes += 1;
      },
    });
    const stop = new AbortController();
    stops.push(stop);
    const running = watch.run(stop.signal);
    await until(async () => (await bus.locks()).includes(SLEEP_LOCK), { withinMs });
    // Signals sent before the subscription may be lost. A shutdown is no suspend.
    await until(
      async () => {
        if (resumes > 0) return true;
        await bus.announce(['b', true]);
        await bus.announceSleep(false);
        return false;
      },
      { withinMs, everyMs: 50 },
    );
    expect(requests).toEqual([]);
    await bus.announceSleep(true);
    await until(() => requests.length === 1, { withinMs });
    expect(requests[0]?.locks).toEqual([SLEEP_LOCK]);
    expect(JSON.stringify(requests[0]?.body)).toContain('nodekeeper.dev/planned-silence-until');
    expect(await bus.locks()).toEqual([SLEEP_LOCK]);
    stored();
    await until(async () => (await bus.locks()).length === 0, { withinMs });
    const before = resumes;
    await bus.announceSleep(false);
    await until(async () => (await bus.locks()).includes(SLEEP_LOCK), { withinMs });
    expect(resumes).toBe(before + 1);
    stop.abort();
    await running;
    await until(async () => (await bus.locks()).length === 0, { withinMs });
  });

  it('says that there is no bus, and that there is no logind on it', async () => {
    const nowhere = logind({ log: silentLog, busAddress: `unix:path=${root}/nothing`, timeoutMs: 2_000 });
    await expect(nowhere.delayMaxMs()).rejects.toThrow(/connection .* ended/);
    await expect(nowhere.hold()).rejects.toThrow(/systemd-inhibit could not acquire the lock/);
  });

  it('ends the watch with the connection', async () => {
    const { ended } = await listen(open());
    bus.breakDown();
    await ended;
  });
});
