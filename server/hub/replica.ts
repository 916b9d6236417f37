/**
 * The copy of a cluster that a hub reads: it lists every resource that has a change log, then follows the log. How the
 * copy is written, and why it misses nothing: replica-store.ts.
 *
 * One round at a time asks for the changes of some resources until it has them all. Rounds of resources that have
 * changed lately, or were written through the hub, are frequent; one of all follows several of those.
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { Clock, RandomSource, StartTimeLimit } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../shared/kinds/customresourcedefinitions/resource.ts';
import { storedResources } from '../../shared/kinds/resources.ts';
import type { StoredResource } from '../../shared/kinds/stored-resource.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type ChangesOfResource, RESOURCES_MAX } from '../../shared/watches/change-read.ts';
import { type ClusterReads, ClusterRefusal, clusterReads, type ListedPage } from './cluster-reads.ts';
import { type ReplicaStore, replicaStore } from './replica-store.ts';
import type { Upstream } from './upstream.ts';
import { versionClock } from './version-clock.ts';

/** Between two rounds. Milliseconds. */
const ROUND_MS = 2_500;
/** Between two rounds of all resources. Milliseconds. */
const FULL_ROUND_MS = 15_000;
/** A resource is in every round for this time after a change, or after a write through the hub. Milliseconds. */
const ACTIVE_MS = 600_000;
/** Another cluster may answer at the address, and accept the same token. No request fails then. Milliseconds. */
const SAME_CLUSTER_MS = 60_000;
/** Answers of one round. A cluster that changes faster is followed by the next rounds. */
const READS_MAX = 200;
/** A client waits this long at most for its own write. Milliseconds. */
const CATCH_UP_MS = 2_000;
const REPEATS: Backoff = { firstMs: 1_000, limitMs: 30_000, jitter: [0.5, 1] };

export type Link =
  | { readonly kind: 'up' }
  /** `sinceMs`: when the last complete read of the cluster began. The copy may be older than that by nothing. */
  | {
      readonly kind: 'down';
      readonly sinceMs: number;
      readonly why: string;
      /** A read of the cluster failed. False: this process has not read it all yet. */
      readonly hasFailed: boolean;
    };

export interface Replica {
  readonly items: ItemStore;
  /** For the change logs over `items`, and for the expiry of their rows (version-clock.ts). */
  readonly versionClock: Clock;
  /** Its lists and watches are answered from `items`. What is not held must not be read there. */
  holds(resource: string): boolean;
  /** The copy of the resource has only what belongs to the nodes of a site. */
  isPart(resource: string): boolean;
  link(): Link;
  /** Names the cluster in tokens of its machines. Undefined: it has not said so yet. */
  clusterId(): string | undefined;
  /** The copy has every change of the resource up to here. 0: it has none. */
  version(resource: string): number;
  /**
   * A write of this resource has passed. Resolves when the copy has every change that was committed before the call, or
   * after CATCH_UP_MS with false.
   */
  caughtUp(resource: string): Promise<boolean>;
  /** Resolves when nothing is written any more. */
  stop(): Promise<void>;
}

export interface ReplicaOptions {
  readonly items: ItemStore;
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly random: Pick<RandomSource, 'fraction'>;
  /** Ends early, in whatever way, when the signal is aborted. */
  readonly pause: (milliseconds: number, stopped: AbortSignal) => Promise<unknown>;
  readonly startTimeLimit: StartTimeLimit;
  readonly log: Log;
  /** The change log of the resource has changed, or it is not held any more: wakes watches. */
  readonly onChanged: (resource: string) => void;
  /** A round of all resources has read every change. */
  readonly onRead?: () => void;
}

/** Returns when the file is read: what it holds can be served, also without the cluster. @throws StoreFault */
export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const { items, clock, log, random, startTimeLimit } = options;
  const cluster = clusterReads(options.upstream);
  const stopped = new AbortController();
  /** When a resource last changed, or was written through the hub. */
  const activeAtMs = new Map<string, number>();
  const note = (resource: string): void => {
    activeAtMs.set(resource, clock.nowMs());
  };
  const store = replicaStore({
    items,
    clock,
    onChanged(resource) {
      note(resource);
      options.onChanged(resource);
    },
  });
  await store.load();
  const round = follow({ store, cluster, clock, log });
  const openedAtMs = clock.nowMs();
  let why: string | undefined = 'it was not read since this process began';
  let failures = 0;
  let fullAtMs: number | undefined;

  const isOlder = (atMs: number | undefined, milliseconds: number): boolean =>
    atMs === undefined || Math.abs(clock.nowMs() - atMs) >= milliseconds;
  const isActive = ({ resource }: StoredResource): boolean => !isOlder(activeAtMs.get(resource), ACTIVE_MS);

  /** One round at a time. Those who wait for the next one share it. */
  let running: Promise<boolean> | undefined;
  let next: { readonly wanted: Wanted; readonly done: Promise<boolean> } | undefined;
  function startRound(
    resources: readonly StoredResource[],
    { isConsistent } = { isConsistent: false },
  ): Promise<boolean> {
    if (next !== undefined) {
      for (const resource of resources) next.wanted.resources.add(resource);
      next.wanted.isConsistent ||= isConsistent;
      return next.done;
    }
    const wanted: Wanted = { resources: new Set(resources), isConsistent };
    const done = Promise.resolve(running?.catch(() => false)).then(() => {
      next = undefined;
      running = round([...wanted.resources], { isLinked: why === undefined, isConsistent: wanted.isConsistent });
      return running;
    });
    next = { wanted, done };
    return done;
  }

  /** @returns how long to wait. 0: changes are left, so the copy is not said to be of this time. Milliseconds */
  async function roundIfDue(): Promise<number> {
    const isFull = why !== undefined || isOlder(fullAtMs, FULL_ROUND_MS);
    const resources = isFull ? FOLLOWED : FOLLOWED.filter(isActive);
    const startedAtMs = clock.nowMs();
    try {
      const isComplete = resources.length === 0 || (await startRound(resources));
      if (!isComplete) return 0;
      if (isFull) {
        fullAtMs = startedAtMs;
        store.wasRead(startedAtMs);
        if (why !== undefined) log.info('the cluster is followed', { heldResources: FOLLOWED.filter(isHeld).length });
        why = undefined;
        failures = 0;
        options.onRead?.();
      }
      return ROUND_MS;
    } catch (error) {
      const { message } = error as Error;
      if (why !== message) log.warn('the cluster cannot be followed', { error });
      why = message;
      failures += 1;
      const askedMs = error instanceof ClusterRefusal ? error.retryAfterMs : 0;
      return Math.max(askedMs, backoffMs(REPEATS, failures - 1, random.fraction()));
    }
  }
  const isHeld = ({ resource }: StoredResource): boolean => store.holds(resource);

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      const waitMs = await roundIfDue();
      await options.pause(waitMs, stopped.signal).catch(() => {});
    }
    await running?.catch(() => {});
  }
  const ended = run();

  return {
    items,
    versionClock: versionClock(store.oldestCursor, clock),
    holds: store.holds,
    version: store.cursor,
    isPart: (resource) => store.bounds(resource) !== undefined,
    clusterId: store.clusterId,
    link() {
      if (why === undefined) return { kind: 'up' };
      return { kind: 'down', sinceMs: store.readAtMs() ?? openedAtMs, why, hasFailed: failures > 0 };
    },
    async caughtUp(resource) {
      const stored = FOLLOWED.find((each) => each.resource === resource);
      if (stored === undefined || !store.holds(resource) || stopped.signal.aborted) return false;
      note(resource);
      const limit = startTimeLimit(CATCH_UP_MS);
      // The next full round reports why it failed.
      const caughtUp = startRound([stored], { isConsistent: true }).catch(() => false);
      const isCaughtUp = await Promise.race([caughtUp, limit.reached.then(() => false)]);
      limit.cancel();
      return isCaughtUp;
    },
    async stop() {
      stopped.abort();
      await ended;
    },
  };
}

/** The others have no change log in any cluster, or are more than their items: requests for these are passed. */
const FOLLOWED: readonly StoredResource[] = storedResources.filter(
  (each) => each.verbs.includes('watch') && each !== CUSTOM_RESOURCE_DEFINITIONS,
);

/** What the next round reads. */
interface Wanted {
  readonly resources: Set<StoredResource>;
  /** Somebody waits for a write that has passed. A read that may be late would not have it. */
  isConsistent: boolean;
}

interface Following {
  readonly store: ReplicaStore;
  readonly cluster: ClusterReads;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * One round. `isLinked`: the last one reached the cluster, so it is probably the same. @returns whether all changes
 * were read. @throws what a read of the cluster or a write of the copy throws
 */
function follow({ store, cluster, clock, log }: Following) {
  let checkedAtMs = Number.NEGATIVE_INFINITY;

  async function checkCluster(): Promise<void> {
    const uid = await cluster.clusterUid();
    checkedAtMs = clock.nowMs();
    const known = store.clusterUid();
    if (known === uid) return;
    if (known !== undefined) log.warn('this is another cluster: the copy of the former one is deleted', { known, uid });
    await store.begin(uid);
  }

  /** An older backup is in the place of what was copied: versions of the copy may mean other objects, or none. */
  async function isAnotherHistory(history: string): Promise<boolean> {
    const known = store.history();
    const clusterUid = store.clusterUid();
    const isAnother = known !== undefined && known !== history && clusterUid !== undefined;
    if (isAnother) {
      log.warn('the cluster was restored from a backup: the copy is deleted and made anew', { known, history });
      await store.begin(clusterUid);
    }
    await store.keepHistory(history);
    return isAnother;
  }

  return async (
    resources: readonly StoredResource[],
    { isLinked, isConsistent }: { readonly isLinked: boolean; readonly isConsistent: boolean },
  ): Promise<boolean> => {
    await store.load();
    let isChecked = false;
    const check = async (): Promise<void> => {
      if (!isChecked) await checkCluster();
      isChecked = true;
    };
    const isRecent = Math.abs(clock.nowMs() - checkedAtMs) < SAME_CLUSTER_MS;
    if (!isLinked || !isRecent || store.clusterUid() === undefined) await check();
    let asked = resources;
    const faults: unknown[] = [];
    for (let reads = 0; reads < READS_MAX && asked.length > 0; reads += 1) {
      const part = asked.slice(0, RESOURCES_MAX);
      const rest = asked.slice(RESOURCES_MAX);
      const cursors = part.map(({ group, resource }) => {
        return {
          group,
          resource,
          after: String(store.cursor(resource)),
          ...defined({ bounds: store.bounds(resource) }),
        };
      });
      const { outcomes, clusterId, history } = await cluster.changes(cursors, { consistent: isConsistent });
      if (history !== undefined && (await isAnotherHistory(history))) return false;
      if (clusterId !== undefined) await store.keepClusterId(clusterId);
      const again: StoredResource[] = [];
      for (const [index, stored] of part.entries()) {
        const outcome = outcomes[index]!;
        if (needsList(store, stored, outcome)) {
          await check();
          const isPart = outcome.outcome === 'listed';
          let bounds: string | undefined;
          const pages = (): AsyncGenerator<ListedPage> =>
            isPart
              ? cluster.partPages(stored, (listed) => {
                  bounds = listed;
                })
              : cluster.pages(stored);
          // One that cannot be listed does not stop the others.
          await store
            .list(stored.resource, pages)
            // After the list: whoever is interrupted before it lists again.
            .then(() => store.keepBounds(stored.resource, bounds))
            .then(
              () => {
                log.info('a resource was listed', { resource: stored.resource });
                again.push(stored);
              },
              (fault: unknown) => faults.push(fault),
            );
        } else if (outcome.outcome === 'changes') {
          await store.apply(stored.resource, { changes: outcome.changes, through: Number(outcome.through) });
          if (outcome.bounds !== undefined) await store.keepBounds(stored.resource, outcome.bounds);
          if (outcome.more) again.push(stored);
        } else if (store.holds(stored.resource) || store.isUnfinished(stored.resource)) {
          log.warn('a resource is not held any more', { resource: stored.resource, outcome });
          await store.drop(stored.resource);
        }
      }
      asked = [...rest, ...again];
    }
    if (faults.length > 0) throw faults[0];
    return asked.length === 0;
  };
}

const needsList = (store: ReplicaStore, { resource }: StoredResource, { outcome }: ChangesOfResource): boolean =>
  outcome === 'expired' || outcome === 'listed' || (outcome === 'changes' && store.cursor(resource) === 0);
