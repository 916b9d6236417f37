/**
 * A replica ends with the objects of its cluster, and watches of it miss nothing: after random commits, cuts, kills,
 * expiries, clocks that go back, and rights that come and go.
 */
import { expect, it } from 'vitest';
import { type ChangeSignals, changeSignals } from '../../server/watches/change-signals.ts';
import { sharedChanges } from '../../server/watches/shared-changes.ts';
import { clusterObjects, findStored, shardsOf } from '../../shared/kinds/resources.ts';
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { apiVersionOf, typed } from '../../shared/kubernetes/normal-form.ts';
import { type ChangeLog, changeLog } from '../../shared/store/change-log.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { resourceVersionOf } from '../../shared/store/object-record.ts';
import type { ObjectStore, ObjectWrite } from '../../shared/store/object-store.ts';
import { ownedRefs } from '../../shared/store/owners.ts';
import { dyingStore } from '../support/failing-store.ts';
import { type Followed, type FollowedCluster, followedCluster } from '../support/followed-cluster.ts';
import { randomFrom } from '../support/seeded.ts';

const RESOURCES = ['pods', 'nodes', 'configmaps', 'deployments'] as const;
const NAMES = 12;
const NODE_NAMES = ['n0', 'n1', 'n2'];
const OWNERS = ['owner-0', 'owner-1'];
const STEPS = 60;
/** More of them find more: SEEDS=200. */
const SEEDS = Number(process.env['SEEDS'] ?? 12);
const FIRST_SEED = Number(process.env['SEED'] ?? 1);
const HOUR_MS = 3_600_000;

const storeOptions = { fraction: () => 0.5, uuid: () => '' };

interface Process {
  readonly followed: Followed;
  readonly log: ChangeLog;
  readonly signals: ChangeSignals;
}

/** A client: it lists, then follows the log from there, as informers do. */
interface Client {
  readonly resource: string;
  cursor: number;
  readonly states: Map<string, string>;
}

class World {
  readonly cluster: FollowedCluster;
  readonly original: ObjectStore;
  readonly copy: ObjectStore;
  process!: Process;
  clients: Client[] = [];
  #uids = 0;
  readonly items: ItemStore;
  readonly random: () => number;

  constructor(cluster: FollowedCluster, items: ItemStore, random: () => number) {
    this.cluster = cluster;
    this.items = items;
    this.random = random;
    const { api, clock } = this.cluster;
    this.original = clusterObjects({ items: api.items, clock: { nowMs: () => api.nowMs() }, random: storeOptions });
    this.copy = clusterObjects({ items, clock, random: storeOptions });
  }

  below(bound: number): number {
    return Math.floor(this.random() * bound);
  }

  /** `diesAtCall`: counted from its start. */
  async start(diesAtCall = Number.POSITIVE_INFINITY): Promise<void> {
    const { items } = dyingStore(this.items, diesAtCall, this.random() < 0.5);
    const signals = changeSignals();
    const followed = await this.cluster.follow(items, this.random);
    const log = changeLog({ items: this.items, clock: followed.replica.versionClock, shardsOf });
    this.process = { followed, signals, log: sharedChanges(log, signals, this.cluster.clock) };
  }

  /** Most processes die at some call, before or after it happens: in a list, or between two transactions. */
  async restart(): Promise<void> {
    await this.process.followed.replica.stop();
    const diesAtCall = this.random() < 0.7 ? 2 + this.below(this.oneOf([6, 60])) : undefined;
    await this.start(diesAtCall).catch(() => this.start());
  }

  async restartDead(): Promise<void> {
    const link = this.process.followed.replica.link();
    if (link.kind === 'down' && link.why.includes('dead')) await this.restart();
  }

  async commit(): Promise<void> {
    const writes: ObjectWrite[] = [];
    const resource = RESOURCES[this.below(RESOURCES.length)]!;
    const names = new Set(Array.from({ length: 1 + this.below(5) }, () => `x${this.below(NAMES)}`));
    for (const name of names) {
      const { namespaced } = findStored(resource)!;
      const ref = { resource, namespace: namespaced ? 'default' : '', name };
      writes.push(await this.write(ref));
    }
    const { kind } = await this.original.commit({ writes });
    expect(kind).toBe('committed');
  }

  async write(ref: ObjectRef): Promise<ObjectWrite> {
    const previous = await this.original.get(ref);
    if (previous !== undefined && this.random() < 0.4) return { kind: 'delete', ref, previous };
    const { group, version, kind } = findStored(ref.resource)!;
    this.#uids += 1;
    const nodeName =
      previous === undefined ? this.oneOf([undefined, ...NODE_NAMES]) : (previous as Bound).spec?.nodeName;
    const owner = this.oneOf([undefined, ...OWNERS]);
    const object = typed(group, version, kind, {
      metadata: {
        name: ref.name,
        ...(ref.namespace === '' ? {} : { namespace: ref.namespace }),
        uid: previous?.metadata.uid ?? `uid-${this.#uids}`,
        labels: { step: String(this.#uids) },
        ...(owner === undefined
          ? {}
          : { ownerReferences: [{ apiVersion: apiVersionOf({ group, version }), kind, name: owner, uid: owner }] }),
      },
      ...(ref.resource === 'pods' ? { spec: nodeName === undefined ? {} : { nodeName } } : {}),
    } as KubeObject);
    return previous === undefined ? { kind: 'create', ref, object } : { kind: 'update', ref, object, previous };
  }

  oneOf<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  async list(objects: ObjectStore, resource: string): Promise<string[]> {
    return (await objects.list({ resource })).objects.map((object) => JSON.stringify(object));
  }

  /** A list of the replica, or of the cluster: both have the same versions. */
  async connect(resource: string): Promise<Client> {
    const ofCluster = this.random() < 0.3;
    const log = ofCluster
      ? changeLog({ items: this.cluster.api.items, clock: this.cluster.api, shardsOf })
      : this.process.log;
    const cursor = await log.currentVersion(resource);
    const { objects } = await (ofCluster ? this.original : this.copy).list({ resource });
    return {
      resource,
      cursor,
      states: new Map(objects.map((object) => [keyOf(object), JSON.stringify(object)])),
    };
  }

  async follow(client: Client): Promise<Client | undefined> {
    if (!this.process.followed.replica.holds(client.resource)) return undefined;
    for (let reads = 0; reads < 1_000; reads += 1) {
      const outcome = await this.process.log.readChanges({
        resource: client.resource,
        after: client.cursor,
        limit: 1 + this.below(5),
        eager: true,
      });
      if (outcome.kind === 'expired') return this.connect(client.resource);
      for (const { type, object } of outcome.changes) {
        expect(resourceVersionOf(object)).toBeGreaterThan(client.cursor);
        client.cursor = resourceVersionOf(object);
        if (type === 'DELETED') client.states.delete(keyOf(object));
        else client.states.set(keyOf(object), JSON.stringify(object));
      }
      client.cursor = Math.max(client.cursor, outcome.through);
      if (outcome.changes.length === 0) return client;
    }
    throw new Error('a client never reached the end of the log');
  }

  async deliver(): Promise<void> {
    for (const resource of this.process.followed.changed.splice(0)) this.process.signals.changed(resource);
    const next: Client[] = [];
    for (const client of this.clients) {
      const followed = await this.follow(client);
      if (followed !== undefined) next.push(followed);
    }
    this.clients = next;
  }

  async pass(milliseconds: number): Promise<void> {
    // Watches are woken by the commits: they read between two rounds.
    for (let leftMs = milliseconds; leftMs > 0; leftMs -= 300_000) {
      await this.process.followed.advance(Math.min(300_000, leftMs));
      await this.deliver();
      await this.restartDead();
    }
  }
}

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

type Bound = KubeObject & { spec?: { nodeName?: string } };

async function run(seed: number, items: ItemStore): Promise<World> {
  const world = new World(await followedCluster(), items, randomFrom(seed));
  const { cluster } = world;
  for (let commits = world.below(10); commits > 0; commits -= 1) await world.commit();
  await world.start();
  for (let step = 0; step < STEPS; step += 1) {
    const chance = world.random();

    if (chance < 0.45) await world.commit();
    else if (chance < 0.65) await world.pass(world.below(6_000));
    else if (chance < 0.72) cluster.cut(world.random() < 0.5);
    else if (chance < 0.82) await world.restart();
    else if (chance < 0.87) await cluster.forbid(world.random() < 0.5 ? [world.oneOf(RESOURCES)] : []);
    else if (chance < 0.9) await world.pass(720_000);
    else if (chance < 0.93) {
      // No client reads meanwhile.
      cluster.cut(true);
      await world.process.followed.advance(2 * HOUR_MS);
      for (let commits = 1 + world.below(4); commits > 0; commits -= 1) await world.commit();
    } else if (chance < 0.95) cluster.skew(-world.below(600_000));
    else {
      const resource = world.oneOf(RESOURCES);
      if (world.process.followed.replica.holds(resource)) world.clients.push(await world.connect(resource));
    }
  }
  cluster.cut(false);
  await cluster.forbid([]);
  // No list repairs what these lose.
  for (let commits = 0; commits < 8; commits += 1) {
    await world.commit();
    await world.pass(5_000);
    await world.restart();
  }
  await world.process.followed.replica.stop();
  await world.start();
  await world.pass(90_000);
  return world;
}

async function expectEqual(world: World): Promise<void> {
  const { replica } = world.process.followed;
  expect(replica.link()).toEqual({ kind: 'up' });
  for (const resource of RESOURCES) {
    expect(replica.holds(resource)).toBe(true);
    expect(await world.list(world.copy, resource)).toEqual(await world.list(world.original, resource));
  }
  for (const name of NODE_NAMES) {
    expect((await world.copy.listByNode(name)).length).toBe((await world.original.listByNode(name)).length);
  }
  for (const owner of OWNERS) {
    expect(await ownedRefs(world.items, owner)).toEqual(await ownedRefs(world.cluster.api.items, owner));
  }
  for (const { resource, states } of world.clients) {
    expect([...states.values()].sort()).toEqual((await world.list(world.copy, resource)).sort());
  }
  await replica.stop();
}

it.each(Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index))(
  'ends with the objects of its cluster, and so does each client that watched it: seed %i',
  async (seed) => {
    await expectEqual(await run(seed, memoryItemStore()));
  },
);
