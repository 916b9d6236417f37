/** The ShutdownSignal of systemd-logind, also for suspends: https://systemd.io/INHIBITOR_LOCKS */
import { basename, dirname, join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { ShutdownSignal } from '../../ports/shutdown-signal.ts';
import { INHIBITOR, type Inhibitor, LOGIND_SHUTDOWN, logindDropIn } from '../../rules/shutdown-start.ts';
import { SLEEP_INHIBITOR } from '../../rules/sleep-start.ts';
import { replaceFile } from '../system/state-file.ts';
import { InhibitorLockError, takeInhibitorLock } from './inhibitor-lock.ts';
import {
  type Announcement,
  LOGIND,
  LOGIND_MANAGER,
  LOGIND_PATH,
  shutdownAnnouncements,
} from './shutdown-announcements.ts';
import { connectSystemBus, SYSTEM_BUS, type SystemBus, SystemBusError } from './system-bus.ts';

const DROP_IN = 'etc/systemd/logind.conf.d/99-kubelet.conf';
const SIGHUP = 1;

const EVENTS: Readonly<
  Record<'shutdown' | 'sleep', { readonly announcement: Announcement; readonly inhibitor: Inhibitor }>
> = {
  shutdown: { announcement: 'PrepareForShutdown', inhibitor: INHIBITOR },
  sleep: { announcement: 'PrepareForSleep', inhibitor: SLEEP_INHIBITOR },
};

export interface LogindOptions {
  readonly log: Log;
  /** DBUS_SYSTEM_BUS_ADDRESS. Default: the standard socket. */
  readonly busAddress?: string;
  /** What to watch and to delay. Default: the shutdown. */
  readonly event?: 'shutdown' | 'sleep';
  /** Root of the file system with logind's settings. Default: `/`. */
  readonly root?: string;
  /** Time limit of each call, and of acquiring and releasing the lock. Milliseconds. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Longest time until a lost connection is noticed. Milliseconds. Default: 5,000. */
  readonly pingIntervalMs?: number;
}

export interface Logind extends ShutdownSignal {
  /** Closes the connection. Locks stay until they are released. */
  close(): void;
}

export function logind(options: LogindOptions): Logind {
  const { log, busAddress = SYSTEM_BUS, root = '/', timeoutMs = 5_000, pingIntervalMs, event = 'shutdown' } = options;
  const { announcement, inhibitor } = EVENTS[event];
  let bus: SystemBus | undefined;
  /** Aborted when a lock is lost: the watch then ends, and starts again with another lock. */
  let unguarded = new AbortController();

  async function connected(): Promise<SystemBus> {
    if (bus === undefined || bus.ended.aborted) bus = await connectSystemBus(busAddress, { timeoutMs, pingIntervalMs });
    return bus;
  }

  return {
    rules: LOGIND_SHUTDOWN,

    delayMaxMs: async () => readDelayMaxMs(await connected()),

    async raiseDelayMax(delayMs) {
      const file = join(root, DROP_IN);
      makeDirectory(dirname(file), 0o755);
      await replaceFile(file, `${basename(file)}.tmp`, logindDropIn(delayMs), 0o644);
      await reloadLogind(await connected());
    },

    async hold() {
      const lock = await takeInhibitorLock(busAddress, inhibitor, timeoutMs);
      try {
        if (!(await isListed(await connected(), inhibitor)))
          throw new InhibitorLockError('logind does not list the acquired lock');
      } catch (error) {
        await lock.release();
        throw error;
      }
      const guard = unguarded;
      lock.lost.addEventListener('abort', () => {
        log.error(`The lock on the ${event} was lost`);
        guard.abort();
      });
      return { release: () => lock.release() };
    },

    async *watch(signal) {
      try {
        yield* shutdownAnnouncements(await connected(), announcement, log, [signal, unguarded.signal]);
      } finally {
        if (unguarded.signal.aborted) unguarded = new AbortController();
      }
    },

    close() {
      bus?.close();
    },
  };
}

async function readDelayMaxMs(bus: SystemBus): Promise<number> {
  const [property] = await bus.call({
    destination: LOGIND,
    path: LOGIND_PATH,
    interface: 'org.freedesktop.DBus.Properties',
    member: 'Get',
    signature: 'ss',
    body: [LOGIND_MANAGER, 'InhibitDelayMaxUSec'],
  });
  const microseconds = (property as { readonly value?: unknown } | undefined)?.value;
  if (typeof microseconds !== 'bigint') throw new SystemBusError('InhibitDelayMaxUSec is not a 64-bit number');
  return Number(microseconds) / 1_000;
}

/** logind reads its settings again on SIGHUP. */
async function reloadLogind(bus: SystemBus): Promise<void> {
  await bus.call({
    destination: 'org.freedesktop.systemd1',
    path: '/org/freedesktop/systemd1',
    interface: 'org.freedesktop.systemd1.Manager',
    member: 'KillUnit',
    signature: 'ssi',
    body: ['systemd-logind.service', 'all', SIGHUP],
  });
}

/** Whether logind knows our lock. */
async function isListed(bus: SystemBus, { what, who, why, mode }: Inhibitor): Promise<boolean> {
  const [inhibitors] = (await bus.call({
    destination: LOGIND,
    path: LOGIND_PATH,
    interface: LOGIND_MANAGER,
    member: 'ListInhibitors',
  })) as readonly [readonly (readonly unknown[])[]];
  const ours = [what, who, why, mode];
  return inhibitors.some((inhibitor) => ours.every((part, index) => inhibitor[index] === part));
}
