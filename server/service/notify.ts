/**
 * Notifies a service manager about this process: sd_notify(3). Without `NOTIFY_SOCKET` nothing happens.
 *
 * The messages are datagrams of a Unix socket, which Node cannot send. `systemd-notify`, a part of systemd, sends them,
 * so the unit has `NotifyAccess=all`: no program of others is in its group. A message needs a process of a few
 * milliseconds, three times per watchdog interval.
 *
 * The watchdog: the timer is on the event loop. While the loop stands still no message leaves, and the service manager
 * starts the process again. A full disk, missing ticks or a closed gate only show in the status: a restart would not
 * help.
 */
import { execFile } from 'node:child_process';

export type NotifyEnvironment = Readonly<Record<string, string | undefined>>;

export interface ServiceManager {
  /** Serves from now on. The watchdog begins. `status`: one line, asked again for each message. */
  ready(status: () => string): Promise<void>;
  stopping(): Promise<void>;
}

export interface NotifyOptions {
  readonly environment: NotifyEnvironment;
  readonly pid: number;
  onFault(message: string): void;
}

/** Messages per watchdog interval: one may be lost, one late. */
const PER_INTERVAL = 3;
/** Longest wait for `systemd-notify`. Milliseconds. */
const SEND_MS = 5_000;

export function serviceManager({ environment, pid, onFault }: NotifyOptions): ServiceManager {
  if (!environment['NOTIFY_SOCKET']) return { ready: async () => {}, stopping: async () => {} };
  let timer: NodeJS.Timeout | undefined;
  let isSending = false;

  const send = (...lines: readonly string[]): Promise<void> =>
    new Promise((resolve) => {
      // An environment of its own: the watchdog of this process is none of the sender's.
      const { NOTIFY_SOCKET, PATH } = environment;
      execFile('systemd-notify', lines, { env: { NOTIFY_SOCKET, PATH }, timeout: SEND_MS }, (error) => {
        if (error !== null) onFault(`systemd-notify failed: ${error.message.trim()}`);
        resolve();
      });
    });

  return {
    async ready(status) {
      const intervalMs = watchdogMs(environment, pid);
      if (intervalMs !== undefined) {
        timer = setInterval(() => {
          if (isSending) return;
          isSending = true;
          void send('WATCHDOG=1', `STATUS=${status()}`).finally(() => {
            isSending = false;
          });
        }, intervalMs / PER_INTERVAL);
      }
      await send('READY=1', `STATUS=${status()}`);
    },
    async stopping() {
      clearInterval(timer);
      await send('STOPPING=1', 'STATUS=stopping');
    },
  };
}

/** What sd_watchdog_enabled(3) returns. */
function watchdogMs({ WATCHDOG_USEC, WATCHDOG_PID }: NotifyEnvironment, pid: number): number | undefined {
  if (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== pid) return undefined;
  const milliseconds = Number(WATCHDOG_USEC) / 1_000;
  return milliseconds > 0 ? milliseconds : undefined;
}
