/**
 * L9: a watcher receives every change after the version that it lists or resumes from, in order and once. After it has
 * received everything up to a version, no change is committed below it. Without faults it has the objects of the list.
 *
 * Each change is compared with the commits to the tables, so an error of a watcher is also found during faults.
 */
import type { KubeObject } from '../../shared/kinds/types.ts';
import {
  LOG_RETENTION_SECONDS,
  logPartition,
  objectPartition,
  objectSortKey,
  RESOURCE_VERSIONS_PER_MS,
} from '../../shared/store/layout.ts';
import { type LogEntry, logEntries } from '../../shared/store/object-record.ts';
import type { TimedChange } from '../recent-changes.ts';
import { type Law, type LawContext, seconds } from './law.ts';
import { storedObject } from './stored-object.ts';

export type WatchedResource = 'nodes' | 'pods';
type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** A client that lists and watches, and resumes where a watch ended. */
export interface Watcher {
  readonly name: string;
  readonly resource: WatchedResource;
  readonly selects: (object: KubeObject) => boolean;
}

/** A change as a watcher must receive it. */
interface Committed {
  readonly version: number;
  readonly type: EventType;
  readonly key: string;
  readonly atMs: number;
  /** Lines that the watcher had received when this was committed. */
  readonly linesBefore: number;
}

interface Followed {
  readonly watcher: Watcher;
  /** All changes that the watcher must receive, by version. */
  readonly committed: Committed[];
  /** The same changes by object. */
  readonly byKey: Map<string, Committed[]>;
  /** Stored versions of the selected objects. */
  readonly stored: Map<string, number>;
  /** Versions of the objects that the watcher has received. */
  received: Map<string, number>;
  /** Version up to which it has received everything; undefined while it must list. */
  through: number | undefined;
  /** Since when it must list. */
  listsSinceMs: number;
  /** Lines received until then. */
  linesBeforeList: number;
  /** Lines received, those of an initial state included. */
  lines: number;
  /** Since when it is connected; undefined while it is disconnected. */
  followsSinceMs: number | undefined;
}

export interface WatchLaw extends Law {
  follow(watcher: Watcher): void;
  /** Processes the changes of one step. */
  learn(changes: readonly TimedChange[]): void;
  onListed(watcher: Watcher, version: string, objects: readonly KubeObject[]): void;
  /** It resumes from a version that is hours old, without objects. */
  onAncient(watcher: Watcher, version: string): void;
  /** It received a line of any type. */
  onLine(watcher: Watcher): void;
  /** It received a page of a list. */
  onPage(watcher: Watcher): void;
  onEvent(watcher: Watcher, type: EventType, object: KubeObject): void;
  onBookmark(watcher: Watcher, version: string): void;
  /** It received Expired. */
  onExpired(watcher: Watcher): void;
  /** It drops its objects and will list. */
  onForgot(watcher: Watcher): void;
  onAway(watcher: Watcher, isAway: boolean): void;
}

/** A version must not be expired before this age minus the clock skew. Milliseconds. */
const KEPT_MS = LOG_RETENTION_SECONDS * 1_000;
/** A page of a list may take as long as this many lines. */
const PAGE_LINES = 4;
/** Maximum time from a commit to its event without faults, including one reconnection. Milliseconds. */
const RECEIVED_WITHIN_MS = 20_000;
/**
 * A watcher receives one line after another, each at most this long after the one before. A thousand pods that are
 * created at once last as long as their lines: each line received since a commit adds this to the time of its event.
 * Milliseconds.
 */
export const LINE_MAX_MS = 40;

const keyOf = ({ metadata }: KubeObject): string =>
  metadata.namespace === undefined ? metadata.name! : `${metadata.namespace}/${metadata.name}`;
const versionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion);
const sortKeyOf = (entry: LogEntry): string => {
  const { namespace, name } = entry.change().ref;
  return objectSortKey(namespace, name);
};

export function watchersReceiveEveryChange(context: LawContext): WatchLaw {
  return new WatchersReceiveEveryChange(context);
}

class WatchersReceiveEveryChange implements WatchLaw {
  readonly name = 'L9';
  readonly #context: LawContext;
  readonly #all = new Map<Watcher, Followed>();

  constructor(context: LawContext) {
    this.#context = context;
  }

  follow(watcher: Watcher): void {
    this.#all.set(watcher, {
      watcher,
      committed: [],
      byKey: new Map(),
      stored: new Map(),
      received: new Map(),
      through: undefined,
      listsSinceMs: this.#context.nowMs(),
      linesBeforeList: 0,
      lines: 0,
      followsSinceMs: this.#context.nowMs(),
    });
  }

  learn(changes: readonly TimedChange[]): void {
    if (this.#all.size === 0) return;
    for (const change of changes) {
      const { table, pk, sk } = change.key;
      if (table !== 'objects' || change.cause === 'expired') continue;
      for (const resource of ['nodes', 'pods'] as const) {
        if (!pk.startsWith(objectPartition(resource))) continue;
        const log = changes
          .filter(({ key, newImage }) => newImage !== undefined && key.pk.startsWith(logPartition(resource)))
          .flatMap(({ newImage }) => logEntries(resource, newImage!))
          .find((entry) => sortKeyOf(entry) === sk);
        const followers = [...this.#all.values()].filter(({ watcher }) => watcher.resource === resource);
        if (log === undefined) {
          for (const followed of followers)
            this.#fail(followed, `cannot receive ${sk}: it was written without a log record`, sk);
          continue;
        }
        const before = change.oldImage === undefined ? undefined : storedObject(change.oldImage);
        const now = change.newImage === undefined ? undefined : storedObject(change.newImage);
        const type = now === undefined ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED';
        for (const followed of followers) {
          const { selects } = followed.watcher;
          const shown = this.#eventTypeFor(
            type,
            before !== undefined && selects(before),
            now !== undefined && selects(now),
          );
          if (shown === undefined) continue;
          this.#commit(followed, {
            version: log.resourceVersion,
            type: shown,
            key: sk,
            atMs: change.atMs,
            linesBefore: followed.lines,
          });
        }
      }
    }
  }

  onListed(watcher: Watcher, version: string, objects: readonly KubeObject[]): void {
    const followed = this.#all.get(watcher)!;
    const through = Number(version);
    followed.through = through;
    followed.received = new Map(objects.map((object) => [keyOf(object), versionOf(object)]));
    // A list contains all changes up to its version, and may contain later ones of single objects.
    for (const [key, ofKey] of followed.byKey) {
      const shown = followed.received.get(key);
      const least = ofKey.findLast((each) => each.version <= through);
      if (shown === undefined) {
        // Only a deletion removes an object from the list.
        const isGone =
          least === undefined || ofKey.some((each) => each.type === 'DELETED' && each.version >= least.version);
        if (!isGone) this.#fail(followed, `listed at ${version} without ${key}`, key);
      } else {
        const found = ofKey.find((each) => each.version === shown);
        const isThere = found !== undefined && found.type !== 'DELETED' && shown >= (least?.version ?? 0);
        if (!isThere) this.#fail(followed, `listed at ${version} and found ${key} of ${shown}`, key);
      }
    }
    for (const key of followed.received.keys()) {
      if (!followed.byKey.has(key)) this.#fail(followed, `listed ${key}, which never existed`, key);
    }
  }

  onAncient(watcher: Watcher, version: string): void {
    const followed = this.#all.get(watcher)!;
    followed.received = new Map();
    followed.through = Number(version);
  }

  onLine(watcher: Watcher): void {
    this.#all.get(watcher)!.lines += 1;
  }

  onPage(watcher: Watcher): void {
    this.#all.get(watcher)!.lines += PAGE_LINES;
  }

  onEvent(watcher: Watcher, type: EventType, object: KubeObject): void {
    const followed = this.#all.get(watcher)!;
    const { through = 0 } = followed;
    const version = versionOf(object);
    const key = keyOf(object);
    if (version <= through) {
      this.#fail(followed, `received ${key} at ${version} after ${through}`, key);
      return;
    }
    const next = this.#nextRequired(followed, through, version);
    if (next === undefined || next.version > version) {
      this.#fail(followed, `received ${key} ${type} at ${version}, which never happened`, key);
      return;
    }
    if (next.version < version) {
      this.#fail(followed, `received ${version} without ${next.key} ${next.type} at ${next.version}`, next.key);
      return;
    }
    if (next.key !== key || next.type !== type) {
      this.#fail(followed, `received ${key} ${type} at ${version}; it was ${next.key} ${next.type}`, key);
      return;
    }
    followed.through = version;
    this.#put(followed.received, key, type, version);
  }

  onBookmark(watcher: Watcher, version: string): void {
    const followed = this.#all.get(watcher)!;
    const { through = 0 } = followed;
    if (Number(version) < through) {
      this.#fail(followed, `received a bookmark at ${version} after ${through}`);
      return;
    }
    const missed = this.#nextRequired(followed, through, Number(version) + 1);
    if (missed !== undefined && missed.version <= Number(version)) {
      const what = `${missed.key} was ${missed.type} at ${missed.version}`;
      this.#fail(followed, `received a bookmark at ${version} and did not receive that ${what}`, missed.key);
      return;
    }
    followed.through = Number(version);
  }

  onExpired(watcher: Watcher): void {
    const followed = this.#all.get(watcher)!;
    const ageMs = this.#context.nowMs() - (followed.through ?? 0) / RESOURCE_VERSIONS_PER_MS;
    this.#forget(followed);
    if (ageMs >= KEPT_MS - this.#context.clockSlackMs(this.#context.nowMs() - KEPT_MS) - RECEIVED_WITHIN_MS) return;
    this.#fail(followed, `received Expired for a version that is ${seconds(ageMs)} old`);
  }

  onForgot(watcher: Watcher): void {
    this.#forget(this.#all.get(watcher)!);
  }

  onAway(watcher: Watcher, isAway: boolean): void {
    this.#all.get(watcher)!.followsSinceMs = isAway ? undefined : this.#context.nowMs();
  }

  onMoment(): void {
    const calmMs = this.#context.calmSinceMs();
    if (calmMs === undefined) return;
    for (const followed of this.#all.values()) {
      const { followsSinceMs, through, stored, received } = followed;
      if (followsSinceMs === undefined) continue;
      const sinceMs = Math.max(calmMs, followsSinceMs);
      const allowedMs = (linesBefore: number): number =>
        RECEIVED_WITHIN_MS + (followed.lines - linesBefore) * LINE_MAX_MS;
      if (through === undefined) {
        const waitedMs = this.#context.nowMs() - Math.max(sinceMs, followed.listsSinceMs);
        if (waitedMs > allowedMs(followed.linesBeforeList))
          this.#fail(followed, `has no list after ${seconds(waitedMs)} of calm`);
        continue;
      }
      const next = this.#nextRequired(followed, through, Number.POSITIVE_INFINITY);
      if (next !== undefined) {
        if (this.#context.nowMs() - Math.max(sinceMs, next.atMs) <= allowedMs(next.linesBefore)) continue;
        const what = `${next.key} was ${next.type} at ${next.version}`;
        this.#fail(
          followed,
          `has not received for ${seconds(this.#context.nowMs() - next.atMs)} that ${what}`,
          next.key,
        );
        continue;
      }
      const wrong = [...stored.keys(), ...received.keys()].find((key) => stored.get(key) !== received.get(key));
      if (wrong === undefined) continue;
      this.#fail(
        followed,
        `has ${wrong} at version ${received.get(wrong)}; the stored version is ${stored.get(wrong)}`,
        wrong,
      );
    }
  }

  #fail({ watcher }: Followed, message: string, key?: string): void {
    const subjects = [watcher.name, ...(key === undefined ? [] : [key])];
    this.#context.fail({ law: 'L9', subjects, message: `${watcher.name} ${message}` });
  }

  /** Index of the first change above a version. Searched from the end, because changes arrive nearly in order. */
  #firstAbove(committed: readonly Committed[], version: number): number {
    let index = committed.length;
    while (index > 0 && committed[index - 1]!.version > version) index -= 1;
    return index;
  }

  #commit(followed: Followed, change: Committed): void {
    const { committed, byKey, stored, through } = followed;
    committed.splice(this.#firstAbove(committed, change.version), 0, change);
    const ofKey = byKey.get(change.key);
    if (ofKey === undefined) byKey.set(change.key, [change]);
    else ofKey.push(change);
    this.#put(stored, change.key, change.type, change.version);
    if (through === undefined || change.version > through) return;
    this.#fail(
      followed,
      `received everything up to ${through}, and then ${change.key} was ${change.type} at ${change.version}`,
      change.key,
    );
  }

  /** The event type for a watcher with a selector; undefined if it receives none. */
  #eventTypeFor(type: EventType, isBefore: boolean, isNow: boolean): EventType | undefined {
    if (type === 'ADDED') return isNow ? 'ADDED' : undefined;
    if (type === 'DELETED') return isBefore ? 'DELETED' : undefined;
    if (isNow) return isBefore ? 'MODIFIED' : 'ADDED';
    return isBefore ? 'DELETED' : undefined;
  }

  /**
   * The next change that the watcher must receive. It may miss a change below this version of an object that it has in
   * a newer one: the state that it received first may contain later changes of single objects, and is not repeated.
   */
  #nextRequired(followed: Followed, through: number, belowVersion: number): Committed | undefined {
    let next = this.#nextAfter(followed, through);
    while (next !== undefined && next.version < belowVersion) {
      if (next.version > (followed.received.get(next.key) ?? 0)) break;
      next = this.#nextAfter(followed, next.version);
    }
    return next;
  }

  /** The next change for a watcher that received everything up to a version. */
  #nextAfter({ committed }: Followed, through: number): Committed | undefined {
    return committed[this.#firstAbove(committed, through)];
  }

  #put(versions: Map<string, number>, key: string, type: EventType, version: number): void {
    if (type === 'DELETED') versions.delete(key);
    else versions.set(key, version);
  }

  #forget(followed: Followed): void {
    if (followed.through !== undefined) {
      followed.listsSinceMs = this.#context.nowMs();
      followed.linesBeforeList = followed.lines;
    }
    followed.through = undefined;
  }
}
