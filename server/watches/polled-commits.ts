/**
 * Wakes watches where other processes commit as well: the heads of the resources that somebody waits for are read once
 * per second, strongly consistent, for all watches together. So an event is at most one period and two reads old when
 * it is sent. A commit of this process wakes its watches at once (own-commits.ts).
 *
 * Access may be withdrawn by commits that this process does not see. Changes of roles and bindings are seen by their
 * heads; for keys and accounts every watch is checked in turn, twice per minute.
 */
import type { ChangeLog } from '../../shared/store/change-log.ts';
import { GRANTS } from './access-withdrawals.ts';
import type { ChangeSignals } from './change-signals.ts';

export const POLL_MS = 1_000;
const CHECK_EVERY_POLLS = 30;

export interface CommitPoll {
  /** Why the last one failed; undefined: it did not. */
  fault(): string | undefined;
  stop(): void;
}

export function pollCommits(
  log: Pick<ChangeLog, 'newestCommits'>,
  signals: ChangeSignals,
  everyMs = POLL_MS,
): CommitPoll {
  const newest = new Map<string, number>();
  let fault: string | undefined;
  let polls = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  async function poll(): Promise<void> {
    const waitedFor = signals.waitedFor();
    if (waitedFor.length === 0) return;
    polls += 1;
    if (polls % CHECK_EVERY_POLLS === 0) signals.withdrawn();
    const resources = [...new Set([...waitedFor, ...GRANTS])];
    const versions = await log.newestCommits(resources, { consistent: true });
    for (const [index, resource] of resources.entries()) {
      const version = versions[index]!;
      const before = newest.get(resource);
      if (before === version) continue;
      newest.set(resource, version);
      // The first look: a commit may have been made between the read of a watch and now.
      signals.changed(resource);
      if (before !== undefined && GRANTS.has(resource)) signals.withdrawn();
    }
  }

  function next(): void {
    if (isStopped) return;
    timer = setTimeout(() => {
      poll()
        .then(
          () => {
            fault = undefined;
          },
          (error: unknown) => {
            fault = `the tables cannot be read: ${error instanceof Error ? error.message : String(error)}`;
          },
        )
        .finally(next);
    }, everyMs);
  }
  next();

  return {
    fault: () => fault,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
