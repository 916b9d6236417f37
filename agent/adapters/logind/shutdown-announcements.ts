/**
 * logind's signals: PrepareForShutdown, true when a shutdown begins and false when it is cancelled; PrepareForSleep,
 * true before a suspend and false after the resume.
 */
import type { Log } from '../../../shared/observability/log.ts';
import { preparingForShutdown } from '../../rules/shutdown-start.ts';
import type { BusSignal, SystemBus } from './system-bus.ts';

export const LOGIND = 'org.freedesktop.login1';
export const LOGIND_PATH = '/org/freedesktop/login1';
export const LOGIND_MANAGER = 'org.freedesktop.login1.Manager';
export type Announcement = 'PrepareForShutdown' | 'PrepareForSleep';

/** The bus delivers only signals from the owner of logind's name. */
const matchRule = (member: Announcement): string =>
  `type='signal',sender='${LOGIND}',path='${LOGIND_PATH}',interface='${LOGIND_MANAGER}',member='${member}'`;

/** Above this number of unread signals the oldest are dropped. A real shutdown sends few. */
const UNREAD_MAX = 64;

/**
 * Ends when the connection is closed, or when one of the signals is aborted. The first step throws if it cannot
 * subscribe. Signals without a boolean body are logged and skipped.
 */
export async function* shutdownAnnouncements(
  bus: SystemBus,
  announcement: Announcement,
  log: Log,
  until: readonly AbortSignal[],
): AsyncGenerator<boolean, void, undefined> {
  const over = AbortSignal.any([bus.ended, ...until]);
  const unread: boolean[] = [];
  let wake = (): void => undefined;
  const hear = ({ path, interface: name, member, body }: BusSignal): void => {
    if (path !== LOGIND_PATH || name !== LOGIND_MANAGER || member !== announcement) return;
    const preparing = preparingForShutdown(body);
    if (preparing === undefined) {
      log.warn(`${announcement} without a boolean is ignored`, { body: String(body).slice(0, 200) });
      return;
    }
    unread.push(preparing);
    if (unread.length > UNREAD_MAX) unread.shift();
    wake();
  };
  const deaf = bus.onSignal(hear);
  const onOver = (): void => wake();
  over.addEventListener('abort', onOver);
  const match = (member: 'AddMatch' | 'RemoveMatch') =>
    bus.call({
      destination: 'org.freedesktop.DBus',
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus',
      member,
      signature: 's',
      body: [matchRule(announcement)],
    });
  try {
    await match('AddMatch');
    while (!over.aborted) {
      const next = unread.shift();
      if (next !== undefined) yield next;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (over.aborted) resolve();
        });
      }
    }
  } finally {
    deaf();
    over.removeEventListener('abort', onOver);
    // An open connection must not accumulate match rules. A closed one has none.
    if (!bus.ended.aborted)
      await match('RemoveMatch').catch((error) => log.debug('RemoveMatch failed', { error: String(error) }));
  }
}
