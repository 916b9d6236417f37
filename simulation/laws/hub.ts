/**
 * S3: a hub (server/hub) has the objects of its cluster.
 *
 *   - Always: a row of its copy has a version that the cluster had, with the content of that version, and never an
 *     older one than before. A client of the copy receives rising versions. It is answered Expired only if the copy was
 *     listed again, or its version is as old as the log.
 *   - A write that passed through the hub is in the copy when `caughtUp` resolves within its limit, unless a request or
 *     a write of the copy failed meanwhile.
 *   - In calm, with a link that works: the copy has every change of the cluster soon, and nothing that the hub may not
 *     read. A client that lists and follows the log of the copy has what the copy has.
 *
 * The checker compares the commits of both stores. It uses nothing that the hub says about itself, but for `holds`.
 */
import { storedResources } from '../../shared/kinds/resources.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { Item } from '../../shared/store/item-store.ts';
import {
  LOG_RETENTION_SECONDS,
  objectSortKey,
  RESOURCE_VERSIONS_PER_MS,
  storedResource,
  TTL_ATTRIBUTE,
} from '../../shared/store/layout.ts';
import type { ItemChange } from '../../shared/store/memory/item-changes.ts';
import { OBJECT, type ObjectChange, objectOf } from '../../shared/store/object-record.ts';
import type { Mark } from '../coverage.ts';
import type { TimedChange } from '../recent-changes.ts';
import { type Broken, type Law, type LawContext, seconds } from './law.ts';

/** After the last trouble: the longest back-off, a Retry-After, and a round that lists everything. Milliseconds. */
const SETTLED_MS = 70_000;
/** Two rounds of all resources with their requests. Milliseconds. */
const FOLLOWED_WITHIN_MS = 32_000;
/** From a change of the copy until its clients have it, reconnections included. Milliseconds. */
const DELIVERED_WITHIN_MS = 15_000;
/** An object that expires soon may be in one of the two stores only. Milliseconds. */
const EXPIRY_MS = 300_000;
/** A version is issued by a clock of the cluster. Milliseconds. */
const CLOCK_MS = 5_000;
/** What a hub may read by a second role (hub-world.ts). */
const BY_ANOTHER_ROLE = 'secrets';
/** Of objects that every API shows and no table has: default roles. */
const BUILT_IN_VERSION = 1;
/** Those without a change log, those that no role lets a hub read, and definitions, for which requests are passed. */
const NEVER_READ: ReadonlySet<string> = new Set([
  'leases',
  'decisions',
  'nodeidentities',
  'bootstraptokens',
  'customresourcedefinitions',
]);
const FOLLOWED: readonly string[] = storedResources
  .filter(({ verbs }) => verbs.includes('watch'))
  .map(({ resource }) => resource);

/** A hub as the law sees it. */
export interface WatchedHub {
  readonly name: string;
  /** Since when its process runs and it has no trouble of its own; undefined: it has, or does not. */
  calmSinceMs(): number | undefined;
  holds(resource: string): boolean;
  /** New changes of its copy, in order. */
  changes(): readonly ItemChange[];
}

export interface HubClient {
  readonly name: string;
  readonly resource: string;
}

interface Row {
  readonly resource: string;
  readonly version: number;
  readonly image: Item;
}

interface Pending {
  readonly atMs: number;
  /** undefined: a deletion. */
  readonly version: number | undefined;
}

interface Copy {
  readonly hub: WatchedHub;
  rows: Map<string, Row>;
  /** Highest version of each object so far. */
  readonly newest: Map<string, number>;
  /** By object: changes of the cluster that the copy does not have yet. */
  readonly pending: Map<string, Pending[]>;
  /** By object: when the cluster deleted one that the copy never had. Who knows it awaits the deletion. */
  readonly unseenAtMs: Map<string, number>;
  /** When the copy of a resource last changed. */
  readonly changedAtMs: Map<string, number>;
  /** When the hub last began to list a resource, or lost it. */
  readonly relistedAtMs: Map<string, number>;
}

interface Followed {
  copy: Copy | undefined;
  sinceMs: number;
  through: number;
  readonly versions: Map<string, number>;
}

export interface HubLaw extends Law {
  /** Processes the changes of the cluster in one step. */
  learn(changes: readonly TimedChange[]): void;
  follow(hub: WatchedHub): void;
  /** The file of the hub is lost: its copy is empty. */
  onLost(hub: WatchedHub): void;
  /** Of the first hub, which moves pods if one does: since when it runs without a trouble of its own. */
  firstCalmSinceMs(): number | undefined;
  /** The hub requests a list, or does not hold the resource any more. */
  onRelisted(hub: WatchedHub, resource: string): void;
  /** `caughtUp` resolved within its limit, and nothing failed meanwhile. */
  onCaughtUp(hub: WatchedHub, write: PassedWrite): void;
  onListed(client: HubClient, hub: WatchedHub, version: number, objects: readonly KubeObject[]): void;
  onChanges(client: HubClient, changes: readonly ObjectChange[], through: number): void;
  onExpired(client: HubClient): void;
  /** It has left its hub, or its hub does not answer. */
  onAway(client: HubClient): void;
  /** It is connected again, with what it has. */
  onResumed(client: HubClient, hub: WatchedHub): void;
}

export interface PassedWrite {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** Of the object that was written or deleted. */
  readonly uid: string;
  /** undefined: it was deleted. */
  readonly version: number | undefined;
}

export const hubsFollow = (context: LawContext, hit: (mark: Mark) => void): HubLaw => new HubsFollow(context, hit);

const keyOf = (resource: string, sk: string): string => `${resource}/${sk}`;
const resourceOf = (key: string): string => key.slice(0, key.indexOf('/'));
const sortKeyOf = ({ metadata: { namespace = '', name = '' } }: KubeObject): string => objectSortKey(namespace, name);
const versionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion);

class HubsFollow implements HubLaw {
  readonly name = 'S3';
  readonly #context: LawContext;
  readonly #hit: (mark: Mark) => void;
  readonly #cluster = new Map<string, Row>();
  /** Every version that an object has had. */
  readonly #versions = new Map<string, Set<number>>();
  readonly #copies = new Map<WatchedHub, Copy>();
  readonly #clients = new Map<HubClient, Followed>();
  /** Since when hubs may read Secrets, or may not. */
  #granted: { readonly is: boolean; readonly atMs: number } = { is: false, atMs: 0 };

  constructor(context: LawContext, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#hit = hit;
  }

  follow(hub: WatchedHub): void {
    this.#copies.set(hub, {
      hub,
      rows: new Map(),
      newest: new Map(),
      pending: new Map(),
      unseenAtMs: new Map(),
      changedAtMs: new Map(),
      relistedAtMs: new Map(),
    });
  }

  firstCalmSinceMs(): number | undefined {
    const [first] = this.#copies.keys();
    return first?.calmSinceMs();
  }

  learn(changes: readonly TimedChange[]): void {
    if (this.#copies.size === 0) return;
    for (const { key, newImage, atMs, cause } of changes) {
      const resource = storedResource(key.pk);
      if (key.table !== 'objects' || resource === undefined || !FOLLOWED.includes(resource)) continue;
      const id = keyOf(resource, key.sk);
      const row = newImage === undefined ? undefined : rowOf(resource, newImage);
      if (row === undefined) this.#cluster.delete(id);
      else {
        this.#cluster.set(id, row);
        const versions = this.#versions.get(id);
        if (versions === undefined) this.#versions.set(id, new Set([row.version]));
        else versions.add(row.version);
      }
      if (resource === 'clusterrolebindings' && key.sk.includes(SECRETS_BINDING)) {
        this.#granted = { is: row !== undefined, atMs };
      }
      if (cause === 'expired') continue;
      for (const { pending, rows, unseenAtMs } of this.#copies.values()) {
        const own = rows.get(id);
        if (own?.version === row?.version) {
          if (pending.delete(id)) unseenAtMs.set(id, atMs);
        } else pending.set(id, [...(pending.get(id) ?? []), { atMs, version: row?.version }]);
      }
    }
  }

  onLost(hub: WatchedHub): void {
    const copy = this.#copies.get(hub)!;
    copy.rows = new Map();
    copy.pending.clear();
    const atMs = this.#context.nowMs();
    for (const [id, { version }] of this.#cluster) copy.pending.set(id, [{ atMs, version }]);
    for (const resource of FOLLOWED) this.onRelisted(hub, resource);
  }

  onRelisted(hub: WatchedHub, resource: string): void {
    this.#copies.get(hub)!.relistedAtMs.set(resource, this.#context.nowMs());
  }

  onCaughtUp(hub: WatchedHub, { resource, namespace, name, uid, version }: PassedWrite): void {
    const copy = this.#copies.get(hub)!;
    this.#read(copy);
    const id = keyOf(resource, objectSortKey(namespace, name));
    const own = copy.rows.get(id);
    if (!hub.holds(resource)) return;
    this.#hit('S3:written');
    const isKept =
      version === undefined
        ? own === undefined || objectOf(own.image).metadata.uid !== uid
        : (own?.version ?? this.#newestDeletion(id, version)) >= version;
    if (isKept) return;
    const what = version === undefined ? 'its deletion' : `version ${version}`;
    this.#fail(copy, id, `has caught up without ${what}, but has ${own?.version ?? 'none'}`);
  }

  onListed(client: HubClient, hub: WatchedHub, version: number, objects: readonly KubeObject[]): void {
    const nowMs = this.#context.nowMs();
    this.#clients.set(client, {
      copy: this.#copies.get(hub)!,
      sinceMs: nowMs,
      through: version,
      versions: new Map(objects.map((object) => [sortKeyOf(object), versionOf(object)])),
    });
  }

  onChanges(client: HubClient, changes: readonly ObjectChange[], through: number): void {
    const followed = this.#clients.get(client)!;
    for (const { type, object } of changes) {
      const version = versionOf(object);
      if (version <= followed.through) {
        this.#failFor(client, `receives ${sortKeyOf(object)} at ${version} after ${followed.through}`);
      }
      this.#hit('S3:event');
      followed.through = version;
      if (type === 'DELETED') followed.versions.delete(sortKeyOf(object));
      else followed.versions.set(sortKeyOf(object), version);
    }
    if (through < followed.through) this.#failFor(client, `is at ${through} after ${followed.through}`);
    followed.through = through;
  }

  onExpired(client: HubClient): void {
    this.#hit('S3:expired');
    const { copy, through } = this.#clients.get(client)!;
    this.#clients.delete(client);
    const nowMs = this.#context.nowMs();
    const issuedAtMs = through / RESOURCE_VERSIONS_PER_MS;
    const ageMs = nowMs - issuedAtMs;
    // The clock that issued the version may still be ahead by a step of long ago.
    const slackMs = this.#context.clockSlackMs(0) + CLOCK_MS;
    if (ageMs >= LOG_RETENTION_SECONDS * 1_000 - slackMs - EXPIRY_MS) return;
    if ((copy?.relistedAtMs.get(client.resource) ?? 0) >= issuedAtMs - slackMs) return;
    this.#failFor(client, `receives Expired for ${through}, which is ${seconds(ageMs)} old, without a new list`);
  }

  onAway(client: HubClient): void {
    const followed = this.#clients.get(client);
    if (followed !== undefined) followed.copy = undefined;
  }

  onResumed(client: HubClient, hub: WatchedHub): void {
    const followed = this.#clients.get(client)!;
    followed.copy = this.#copies.get(hub)!;
    followed.sinceMs = this.#context.nowMs();
  }

  onMoment(): void {
    for (const copy of this.#copies.values()) {
      this.#read(copy);
      const [calmMs, own] = [this.#context.calmSinceMs(), copy.hub.calmSinceMs()];
      if (calmMs === undefined || own === undefined) continue;
      const sinceMs = Math.max(calmMs, own);
      if (this.#context.nowMs() - sinceMs < SETTLED_MS) continue;
      this.#checkCopy(copy);
      this.#checkRights(copy);
    }
    for (const [client, followed] of this.#clients) this.#checkClient(client, followed);
  }

  /** Processes what the hub has written. */
  #read(copy: Copy): void {
    const nowMs = this.#context.nowMs();
    for (const { key, newImage } of copy.hub.changes()) {
      const resource = storedResource(key.pk);
      if (resource === undefined) continue;
      const id = keyOf(resource, key.sk);
      copy.changedAtMs.set(resource, nowMs);
      if (newImage === undefined) copy.rows.delete(id);
      else this.#checkRow(copy, id, rowOf(resource, newImage));
      this.#settle(copy, id);
    }
  }

  #checkRow(copy: Copy, id: string, row: Row): void {
    copy.rows.set(id, row);
    const newest = copy.newest.get(id) ?? 0;
    copy.newest.set(id, Math.max(newest, row.version));
    if (row.version === BUILT_IN_VERSION) return;
    if (row.version < newest) this.#fail(copy, id, `returns to version ${row.version} after ${newest}`);
    if (this.#versions.get(id)?.has(row.version) !== true) {
      this.#fail(copy, id, `has version ${row.version}, which the cluster never had`);
      return;
    }
    const original = this.#cluster.get(id);
    if (original?.version !== row.version) return;
    this.#hit('S3:content');
    if (!isSameContent(original.image, row.image)) this.#fail(copy, id, `has another content of ${row.version}`);
  }

  /** What the copy has by now is no longer awaited. */
  #settle({ rows, pending }: Copy, id: string): void {
    const awaited = pending.get(id);
    const version = rows.get(id)?.version;
    const stored = this.#cluster.get(id)?.version;
    if (awaited === undefined) {
      if (version !== stored && version !== BUILT_IN_VERSION) {
        pending.set(id, [{ atMs: this.#context.nowMs(), version: stored }]);
      }
      return;
    }
    const at = awaited.findIndex((each) => each.version === version);
    if (version === stored || at === awaited.length - 1) pending.delete(id);
    else if (at !== -1) awaited.splice(0, at + 1);
  }

  #checkCopy(copy: Copy): void {
    const nowMs = this.#context.nowMs();
    this.#hit('S3:equal');
    for (const [id, [first]] of copy.pending) {
      const resource = resourceOf(id);
      if (first === undefined || !this.#isRead(resource)) continue;
      const sinceMs = resource === BY_ANOTHER_ROLE ? Math.max(first.atMs, this.#granted.atMs) : first.atMs;
      if (nowMs - sinceMs <= FOLLOWED_WITHIN_MS) continue;
      const [stored, own] = [this.#cluster.get(id), copy.rows.get(id)];
      if (expiresWithin(stored ?? own, nowMs)) continue;
      const what = `version ${own?.version ?? 'none'}; the cluster has ${stored?.version ?? 'none'}`;
      this.#fail(copy, id, `has ${what}, for ${seconds(nowMs - sinceMs)}`, true);
    }
  }

  #checkRights({ hub, rows }: Copy): void {
    const copy = this.#copies.get(hub)!;
    const isNew = this.#context.nowMs() - this.#granted.atMs <= FOLLOWED_WITHIN_MS;
    for (const resource of FOLLOWED) {
      if (resource === BY_ANOTHER_ROLE && isNew) continue;
      const isHeld = hub.holds(resource);
      if (isHeld !== this.#isRead(resource)) {
        this.#fail(copy, `${resource}/`, isHeld ? 'is served, without the right to read it' : 'is not held', true);
      }
    }
    if (this.#granted.is || isNew) return;
    this.#hit('S3:withdrawn');
    const kept = [...rows.keys()].find((id) => resourceOf(id) === BY_ANOTHER_ROLE);
    if (kept !== undefined) this.#fail(copy, kept, 'is kept, without the right to read it', true);
  }

  #checkClient(client: HubClient, { copy, sinceMs, versions }: Followed): void {
    const nowMs = this.#context.nowMs();
    if (copy === undefined) return;
    const { resource } = client;
    const ownSinceMs = copy.hub.calmSinceMs();
    if (ownSinceMs === undefined) return;
    const changedMs = Math.max(sinceMs, ownSinceMs, copy.changedAtMs.get(resource) ?? 0);
    const waitedMs = nowMs - changedMs;
    // Once for each state of the copy.
    if (waitedMs <= DELIVERED_WITHIN_MS || waitedMs > DELIVERED_WITHIN_MS + 600 || !copy.hub.holds(resource)) return;
    this.#hit('S3:watch');
    const rows = new Map(
      [...copy.rows].flatMap(([id, row]) =>
        row.resource === resource ? [[id.slice(resource.length + 1), row.version] as const] : [],
      ),
    );
    const wrong = [...rows.keys(), ...versions.keys()].find(
      (sk) => rows.get(sk) !== versions.get(sk) && !this.#isBehind(copy, keyOf(resource, sk)),
    );
    if (wrong === undefined) return;
    const [has, is] = [versions.get(wrong) ?? 'none', rows.get(wrong) ?? 'none'];
    if (expiresWithin(copy.rows.get(keyOf(resource, wrong)), nowMs)) return;
    this.#failFor(client, `has version ${has} of ${wrong} for ${seconds(waitedMs)}; ${copy.hub.name} has ${is}`);
  }

  /** A client that comes from the other hub may know what this one does not have yet, or will never have. */
  #isBehind({ hub, pending, unseenAtMs, changedAtMs, relistedAtMs }: Copy, id: string): boolean {
    const unseenMs = unseenAtMs.get(id);
    if (pending.has(id) || unseenMs === undefined) return pending.has(id);
    const resource = resourceOf(id);
    const writtenMs = Math.max(changedAtMs.get(resource) ?? 0, relistedAtMs.get(resource) ?? 0);
    return this.#context.calmSinceMs() === undefined || writtenMs <= Math.max(unseenMs, hub.calmSinceMs() ?? 0);
  }

  #isRead(resource: string): boolean {
    return !NEVER_READ.has(resource) && (resource !== BY_ANOTHER_ROLE || this.#granted.is);
  }

  /** Infinity: the object of this version is deleted by now. */
  #newestDeletion(id: string, version: number): number {
    return this.#cluster.get(id)?.version === version ? 0 : Number.POSITIVE_INFINITY;
  }

  #fail({ hub }: Copy, id: string, message: string, isLate = false): void {
    this.#broken({ law: 'S3', subjects: [hub.name, id], message: `${hub.name}: ${id} ${message}`, isLate });
  }

  #failFor({ name, resource }: HubClient, message: string): void {
    this.#broken({ law: 'S3', subjects: [name], message: `${name}, which follows ${resource}, ${message}` });
  }

  #broken(broken: Broken): void {
    this.#context.fail(broken);
  }
}

/** The name of the ClusterRoleBinding that lets hubs read Secrets. */
export const SECRETS_BINDING = 'hub-secrets';

const rowOf = (resource: string, image: Item): Row => ({ resource, version: OBJECT.version.of(image), image });

const expiresWithin = (row: Row | undefined, nowMs: number): boolean => {
  const ttl = row?.image[TTL_ATTRIBUTE];
  return typeof ttl === 'number' && ttl * 1_000 < nowMs + EXPIRY_MS;
};

function isSameContent(one: Item, other: Item): boolean {
  const [stored, own] = [one[OBJECT.object.name], other[OBJECT.object.name]];
  if (typeof stored === 'string' && stored === own) return true;
  return comparable(one) === comparable(other);
}

/** Lists and changes of Nodes have the heartbeat times of other rows (shared/fleet/nodes/node-digest.ts). */
const comparable = (image: Item): string =>
  JSON.stringify(objectOf(image), (member, value: unknown) => (member === 'lastHeartbeatTime' ? '' : value));
