/**
 * The change log, read once for all watches of a resource. A read after a commit fetches what is new since the last one
 * and keeps it. So 500 watches of one resource cost one read of the log per commit, and a search in memory each.
 *
 * Why it loses nothing. The kept changes are those after `from` and up to `through`, both as the log reported them
 * complete (decision 0002). A watch reads the log itself if its cursor is before `from`, or the log cannot continue it.
 * The count of commits is read before the log: a commit during the read makes the next one read again.
 */
import type { Clock } from '../../shared/clock.ts';
import { type ChangeLog, type ChangesOutcome, isMissed, type MissedVersions } from '../../shared/store/change-log.ts';
import { type ObjectChange, resourceVersionOf } from '../../shared/store/object-record.ts';
import type { ChangeSignals } from './change-signals.ts';

/** Changes per read of the log, and reads in one refresh. */
const READ_CHANGES_MAX = 500;
const READS_MAX = 20;
/**
 * The log is read again after this time without a commit. Its version grows then: a quiet watch never falls behind
 * what the log keeps. Milliseconds.
 */
const REREAD_MS = 300_000;
/** Kept changes of a resource. A watch that is further behind reads the log. */
const KEPT_CHANGES_MAX = 2_000;

interface Recent {
  /** All changes after this version, up to `through`, are kept. */
  from: number;
  through: number;
  changes: ObjectChange[];
  missed: MissedVersions | undefined;
  /** Number of commits that the last read of the log included, and when it was. */
  commits: number;
  readAtMs: number;
}

export function sharedChanges(log: ChangeLog, signals: ChangeSignals, clock: Clock): ChangeLog {
  const recents = new Map<string, Recent>();
  const reads = new Map<string, Promise<Recent>>();

  async function refreshed(resource: string, before: Recent | undefined): Promise<Recent> {
    const commits = signals.count(resource);
    const recent = before ?? (await emptyAt(resource, commits));
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      const outcome = await log.readChanges({
        resource,
        after: recent.through,
        limit: READ_CHANGES_MAX,
        eager: true,
      });
      // No watch has read for as long as the log is kept.
      if (outcome.kind === 'expired') return emptyAt(resource, commits);
      recent.changes.push(...outcome.changes);
      recent.through = Math.max(recent.through, outcome.through);
      recent.missed = outcome.missed;
      if (outcome.changes.length < READ_CHANGES_MAX) break;
    }
    const surplus = recent.changes.length - KEPT_CHANGES_MAX;
    if (surplus > 0) {
      const dropped = recent.changes.splice(0, surplus);
      recent.from = resourceVersionOf(dropped.at(-1)!.object);
    }
    recent.commits = commits;
    recent.readAtMs = clock.nowMs();
    return recent;
  }

  const emptyAt = async (resource: string, commits: number): Promise<Recent> => {
    const version = await log.currentVersion(resource);
    return { from: version, through: version, changes: [], missed: undefined, commits, readAtMs: clock.nowMs() };
  };

  const isCurrent = (resource: string, { commits, readAtMs }: Recent): boolean =>
    commits === signals.count(resource) && Math.abs(clock.nowMs() - readAtMs) < REREAD_MS;

  /** One read at a time for each resource. What a read that fails has kept is forgotten: the next watch reads again. */
  async function recentOf(resource: string): Promise<Recent> {
    // One that runs began before we asked. Any other from then on includes what was committed until now.
    await reads.get(resource)?.catch(() => undefined);
    const next = reads.get(resource);
    if (next !== undefined) return next;
    const known = recents.get(resource);
    if (known !== undefined && isCurrent(resource, known)) return known;
    recents.delete(resource);
    const reading = refreshed(resource, known);
    reads.set(resource, reading);
    try {
      const recent = await reading;
      recents.set(resource, recent);
      return recent;
    } finally {
      reads.delete(resource);
    }
  }

  return {
    ...log,
    async readChanges(request): Promise<ChangesOutcome> {
      const { resource, after, limit, accepts } = request;
      // Without a promise where nothing is read: that is nearly always so, for each watch at each commit.
      const known = reads.has(resource) ? undefined : recents.get(resource);
      const isKnown = known !== undefined && isCurrent(resource, known);
      const { from, through, changes, missed } = isKnown ? known : await recentOf(resource);
      if (after < from || isMissed(after, missed) || accepts !== undefined) return log.readChanges(request);
      const first = firstAfter(changes, after);
      const delivered = changes.slice(first, first + limit);
      const isAll = first + delivered.length === changes.length;
      return {
        kind: 'changes',
        changes: delivered,
        through: isAll ? Math.max(after, through) : resourceVersionOf(delivered.at(-1)!.object),
        more: !isAll,
      };
    },
  };
}

/** Position of the first change after a version; they are in order of their versions. */
function firstAfter(changes: readonly ObjectChange[], after: number): number {
  let low = 0;
  let high = changes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (resourceVersionOf(changes[middle]!.object) <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
