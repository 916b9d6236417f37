/**
 * L13: a pod is bound at most once, to a node that fits it, and the requests on a node never exceed what it offers.
 *
 * Many schedulers run at once on one store in which concurrent transactions conflict. The turn of a pass is not
 * observed. Processes are delayed, killed at any call, or get no response to a commit; others start in their place.
 * Meanwhile people create pods, also on nodes, and delete pods. They cordon, taint and shrink nodes, delete them and
 * create them again. Passes are requested from the stream, which delivers each change late, and some of them again.
 * Each commit is checked against the objects as they are stored at that moment. The schedule comes from a seed.
 * RACE_SEED prints figures:
 *
 *   RACE_SEED=7 RACE_PODS=5000 RACE_NODES=200 vitest run test/contract/binding-race.test.ts
 */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { schedulingWorks } from '../../functions/object-stream/scheduling-requests.ts';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { nodeHealthWrites } from '../../shared/fleet/nodes/change-node.ts';
import { podUseWrites } from '../../shared/fleet/nodes/node-use.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { KubeNode, KubeObject, KubePod, ObjectRef } from '../../shared/kinds/types.ts';
import { toleratesTaints } from '../../shared/scheduling/node-match.rule.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import { type Amounts, plus } from '../../shared/scheduling/requests.rule.ts';
import {
  countsOnNode,
  type SchedulableNode,
  type SchedulablePod,
  schedulableNode,
  schedulablePod,
} from '../../shared/scheduling/world.rule.ts';
import { type ItemStore, StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import { TickFault } from '../../shared/ticks/tick.ts';
import { conflictingStore } from '../support/conflicting-store.ts';
import { randomFrom } from '../support/seeded.ts';

const SCHEDULERS = 16;
const FROZEN_TURNS_MAX = 300;
/** 200 pods take some seconds, 5,000 some minutes. */
const TIMEOUT_MS = 1_200_000;
const ZONE = 'topology.kubernetes.io/zone';
const NO_AMOUNTS: Amounts = { cpu: 0, memory: 0, ephemeralStorage: 0, scalars: {} };

type Random = () => number;

async function turns(random: Random, most: number): Promise<void> {
  for (let left = Math.floor(random() * most); left > 0; left -= 1) await turn();
}

interface Change {
  readonly resource: 'pods' | 'nodes';
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** The objects as stored, and what is wrong with a commit. */
class Judge {
  readonly pods = new Map<string, SchedulablePod>();
  readonly nodes = new Map<string, SchedulableNode>();
  readonly wrong: string[] = [];
  bindings = 0;
  readonly #objects = new Map<string, KubeObject>();

  /** Returns the changes of pods and Nodes. */
  onCommit(writes: readonly TransactWrite[]): readonly Change[] {
    const changes = writes.flatMap((write) => this.#changeOf(write) ?? []);
    const isScheduler = writes.some(({ key }) => key.pk === 'scheduler' && key.sk === 'order');
    const bound: SchedulablePod[] = [];
    for (const write of writes) {
      const { pk, sk } = write.key;
      if (pk.startsWith('o#pods#')) {
        const before = this.pods.get(sk);
        if (write.kind === 'delete') this.pods.delete(sk);
        if (write.kind !== 'put') continue;
        const pod = schedulablePod(objectOf({ ...write.item, pk, sk }) as KubePod);
        if (before?.uid === pod.uid && before.nodeName !== '' && before.nodeName !== pod.nodeName) {
          this.wrong.push(`${sk} was bound to ${before.nodeName} and then to ${pod.nodeName}`);
        }
        this.pods.set(sk, pod);
        if (isScheduler && pod.nodeName !== '') bound.push(pod);
      } else if (pk.startsWith('o#nodes#')) {
        if (write.kind === 'delete') this.nodes.delete(sk);
        if (write.kind === 'put') this.nodes.set(sk, schedulableNode(objectOf({ ...write.item, pk, sk }) as KubeNode));
      }
    }
    this.bindings += bound.length;
    for (const pod of bound) this.#check(pod);
    return changes;
  }

  #changeOf(write: TransactWrite): Change | undefined {
    const { pk, sk } = write.key;
    const resource = /^o#(pods|nodes)#/.exec(pk)?.[1];
    if (resource === undefined || (write.kind !== 'put' && write.kind !== 'delete')) return undefined;
    const before = this.#objects.get(`${resource} ${sk}`);
    const after = write.kind === 'put' ? objectOf({ ...write.item, pk, sk }) : undefined;
    if (after === undefined) this.#objects.delete(`${resource} ${sk}`);
    else this.#objects.set(`${resource} ${sk}`, after);
    return { resource: resource as Change['resource'], before, after };
  }

  #check(pod: SchedulablePod): void {
    const node = this.nodes.get(pod.nodeName);
    if (node === undefined)
      return void this.wrong.push(`${pod.key} was bound to ${pod.nodeName}, which does not exist`);
    if (pod.isTerminating) this.wrong.push(`${pod.key} was bound after its deletion`);
    if (node.isUnschedulable) this.wrong.push(`${pod.key} was bound to ${node.name}, which is cordoned`);
    if (!toleratesTaints(pod, node)) this.wrong.push(`${pod.key} was bound to ${node.name}, which is tainted`);
    const here = [...this.pods.values()].filter((other) => other.nodeName === node.name && countsOnNode(other));
    const used = here.reduce((sum, { requests }) => plus(sum, requests), NO_AMOUNTS);
    if (used.cpu > node.allocatable.cpu || here.length > node.podsMax) {
      this.wrong.push(`${node.name}: ${used.cpu}m of ${node.allocatable.cpu}m, ${here.length} pods of ${node.podsMax}`);
    }
    const zoneOf = ({ nodeName }: SchedulablePod) => this.nodes.get(nodeName)?.labels[ZONE];
    const alone = pod.labels['alone'];
    if (alone === undefined) return;
    for (const other of this.pods.values()) {
      if (other.uid === pod.uid || other.labels['alone'] !== alone || !countsOnNode(other)) continue;
      // A Node that does not exist is in no zone.
      if (this.nodes.has(other.nodeName) && zoneOf(other) === zoneOf(pod))
        this.wrong.push(`${pod.key} and ${other.key} are both in ${zoneOf(pod)}`);
    }
  }
}

class Killed extends Error {}

interface Race {
  readonly seed: number;
  readonly pods: number;
  readonly nodes: number;
  /** Nodes stay as they are. People delete pods that keep others away, and create more urgent ones. */
  readonly isCalm?: boolean;
}

/** Probability per call, and before a transaction. */
interface Faults {
  readonly kills: number;
  readonly freezes: number;
}

/** What a process sees of the store. It may be killed at every call; nothing that it does then has an effect. */
function fragile(items: ItemStore, random: Random, { kills, freezes }: Faults): ItemStore {
  let isDead = false;
  const around = async <T>(run: () => Promise<T>): Promise<T> => {
    await turns(random, 3);
    if (random() < kills) isDead = true;
    if (isDead) throw new Killed('killed on purpose');
    return run();
  };
  return {
    get: (...args) => around(() => items.get(...args)),
    getMany: (...args) => around(() => items.getMany(...args)),
    query: (...args) => around(() => items.query(...args)),
    scan: (...args) => around(() => items.scan(...args)),
    // Every process may begin a pass at any time: turns are no condition of safety.
    write: (write, options) =>
      around(() => {
        const isTurn = write.key.pk === 'scheduler' && write.key.sk === 'turn' && write.kind === 'update';
        const { when: _when, ...free } = write;
        return items.write(isTurn && 'set' in write && write.set?.['busyUntil'] !== 0 ? free : write, options);
      }),
    transact: (writes) =>
      around(async () => {
        if (random() < freezes) await turns(random, FROZEN_TURNS_MAX);
        const outcome = await items.transact(writes);
        await turns(random, 3);
        if (random() < 0.02) throw new StoreFault('timeout', 'no response', { retryable: true });
        return outcome;
      }),
  };
}

async function race({ seed, pods, nodes, isCalm = false }: Race) {
  const random = randomFrom(seed);
  const judge = new Judge();
  const tables = memoryItemStore();
  let elapsedMs = 0;
  const clock = { nowMs: () => Date.UTC(2026, 0, 1) + elapsedMs };
  const checked: ItemStore = {
    ...tables,
    async transact(writes) {
      const outcome = await tables.transact(writes);
      if (outcome.kind === 'written') {
        for (const change of judge.onCommit(writes)) deliveries.add(delivered(change));
      }
      return outcome;
    },
  };
  // There are no kubelets, which would end victims.
  const policy = { ...defaultPolicy, schedulerGate: 'off', preemption: 'off', podMaxBackoffSeconds: 1 } as const;
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const deliveries = new Set<Promise<void>>();
  let repeated = 0;
  /** The stream: a change arrives late, and may arrive again. */
  const delivered = async ({ resource, before, after }: Change): Promise<void> => {
    const isTwice = random() < 0.2;
    if (isTwice) repeated += 1;
    for (let time = 0; time < (isTwice ? 2 : 1); time += 1) {
      await turns(random, 40);
      const change = { position: 0, before, after, ...(time > 0 && { isRetry: true }) };
      const changes = { nodes: [], pods: [], [resource]: [change] };
      const waker = { wake: async () => [] };
      for (const work of schedulingWorks({ items: tables, clock, policy, waker, log }, changes)) await work.run();
    }
  };
  const shared = conflictingStore(checked, { transactionMs: 1, pause: () => turns(random, 4), random });
  let uuids = 0;
  const source = {
    fraction: random,
    uuid: () => {
      uuids += 1;
      return `00000000-0000-4000-8000-${String(uuids).padStart(12, '0')}`;
    },
  };
  const pause = async (): Promise<void> => {
    elapsedMs += 1;
    await turns(random, 6);
  };
  const objects = clusterObjects({ items: shared, clock, random: source, pause });
  const people = peopleOn({ objects, clock, source, random, pods, isCalm });
  for (let index = 0; index < nodes; index += 1) await people.createNode(index);
  let created = 0;
  const createPods = async (most: number): Promise<void> => {
    for (; created < most; created += 1) await people.createPod(created);
  };
  await createPods(pods / 2);

  const start = (faults: Faults) =>
    fleetControllers({
      items: fragile(shared, random, faults),
      clock,
      random: source,
      pause,
      policy,
      log,
      meter: { add() {} },
    });
  const faults = isCalm ? { kills: 0, freezes: 0.3 } : { kills: 0.002, freezes: 0.002 };
  let kills = 0;
  let isOver = false;
  const scheduler = async (): Promise<void> => {
    let process = start(faults);
    while (!isOver) {
      try {
        // Many passes at once, also where nothing has changed.
        await queueStore(tables).request();
        await process.tickScheduler(0);
      } catch (fault) {
        const causes: unknown[] = fault instanceof TickFault ? fault.errors : [fault];
        if (causes.some((each) => each instanceof Killed)) kills += 1;
        else if (!causes.every((each) => each instanceof StoreFault)) throw fault;
        process = start(faults);
      }
      elapsedMs += 50;
      await turn();
    }
  };
  const leaveZone = async (): Promise<void> => {
    const alone = [...judge.pods.values()].filter(({ labels, nodeName }) => labels['alone'] && nodeName !== '');
    const leaving = alone[Math.floor(random() * alone.length)];
    if (leaving !== undefined) await people.deletePod(leaving.name);
    await turns(random, 60);
  };
  const meddle = async (): Promise<void> => {
    for (let step = 0; step < pods / 4; step += 1) {
      if (isCalm) await leaveZone();
      else await people.meddle(step, nodes);
      // Some pods come before others that wait already, and keep away from them.
      await createPods(pods / 2 + 2 * (step + 1));
      await turns(random, 12);
    }
    isOver = true;
  };
  await Promise.all([meddle(), ...Array.from({ length: SCHEDULERS }, scheduler)]);
  await Promise.all(deliveries);
  // Quiet: one process that is not killed finishes the work.
  const last = start({ kills: 0, freezes: 0 });
  for (let passes = 0; passes < 40; passes += 1) {
    elapsedMs += 400_000;
    await last.tickScheduler(0).catch((fault: unknown) => {
      if (!(fault instanceof TickFault)) throw fault;
    });
  }
  await Promise.all(deliveries);
  return { judge, kills, repeated, conflicts: shared.counters.conflicts, transactions: shared.counters.transactions };
}

function peopleOn({
  objects,
  clock,
  source,
  random,
  pods,
  isCalm,
}: {
  readonly pods: number;
  readonly isCalm: boolean;
  readonly objects: ReturnType<typeof clusterObjects>;
  readonly clock: { nowMs(): number };
  readonly source: { uuid(): string };
  readonly random: Random;
}) {
  const time = () => new Date(clock.nowMs()).toISOString();
  const commit = async (write: ObjectWrite): Promise<void> => {
    const extra = write.ref.resource === 'nodes' ? nodeHealthWrites(write, clock.nowMs()) : podUseWrites(write);
    await objects.commit({ writes: [write], extra });
  };
  const nodeRef = (index: number): ObjectRef => ({ resource: 'nodes', namespace: '', name: `n-${index}` });
  const podRef = (name: string): ObjectRef => ({ resource: 'pods', namespace: 'default', name });
  const pod = (name: string, spec: object, labels: Record<string, string>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: source.uuid(), creationTimestamp: time(), labels },
    spec: { schedulerName: 'default-scheduler', ...spec },
    status: { phase: 'Pending' },
  });
  const container = (cpu: string) => ({ containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }] });
  const change = async (ref: ObjectRef, next: (object: KubeObject) => KubeObject): Promise<void> => {
    const previous = await objects.get(ref);
    if (previous !== undefined) await commit({ kind: 'update', ref, object: next(previous), previous });
  };
  const people = {
    async createNode(index: number): Promise<void> {
      const ref = nodeRef(index);
      const allocatable = { cpu: '8', memory: '16Gi', pods: '40' };
      await commit({
        kind: 'create',
        ref,
        object: {
          apiVersion: 'v1',
          kind: 'Node',
          metadata: {
            name: ref.name,
            uid: source.uuid(),
            creationTimestamp: time(),
            labels: { [ZONE]: `z${index % 3}` },
          },
          spec: {},
          status: { allocatable, conditions: [{ type: 'Ready', status: 'True' }] },
        },
      });
    },
    async createPod(index: number): Promise<void> {
      const name = `p-${index}`;
      const cpu = isCalm ? '1m' : ['100m', '250m', '500m', '1'][index % 4]!;
      const group = isCalm ? index % 8 : (index / 3) % Math.ceil(pods / 12);
      const alone = Number.isInteger(group) ? { alone: `g${group}` } : undefined;
      const required = { topologyKey: ZONE, labelSelector: { matchLabels: alone ?? {} } };
      const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
      const priority = isCalm ? index : [0, 10, 100][Math.floor(random() * 3)];
      const object = pod(name, { ...container(cpu), priority, ...(alone && { affinity }) }, alone ?? {});
      await commit({ kind: 'create', ref: podRef(name), object });
    },
    async deletePod(name: string): Promise<void> {
      const ref = podRef(name);
      const previous = await objects.get(ref);
      if (previous !== undefined) await commit({ kind: 'delete', ref, previous });
    },
    async meddle(step: number, nodes: number): Promise<void> {
      const index = Math.floor(random() * nodes);
      switch (step % 7) {
        case 0:
        case 1: {
          const name = `own-${step}`;
          const object = pod(name, { ...container('500m'), nodeName: `n-${index}` }, {});
          return commit({ kind: 'create', ref: podRef(name), object });
        }
        case 2:
          return people.deletePod(`p-${Math.floor(random() * step * 4)}`);
        case 3:
          return change(nodeRef(index), (node) => ({
            ...node,
            spec: { ...node.spec, unschedulable: node.spec?.['unschedulable'] !== true },
          }));
        case 6:
          return change(nodeRef(index), (node) => ({
            ...node,
            spec: {
              ...node.spec,
              taints: random() < 0.3 ? [{ key: 'maintenance', effect: 'NoSchedule' }] : [],
            },
          }));
        case 4:
          return change(nodeRef(index), (node) => ({
            ...node,
            status: { ...node.status, allocatable: { cpu: random() < 0.5 ? '4' : '8', memory: '16Gi', pods: '40' } },
          }));
        default: {
          const ref = nodeRef(index);
          const previous = await objects.get(ref);
          if (previous !== undefined) await commit({ kind: 'delete', ref, previous });
          return people.createNode(index);
        }
      }
    },
  };
  return people;
}

describe('bindings of concurrent schedulers', () => {
  const { RACE_SEED, RACE_PODS, RACE_NODES } = process.env;
  const seeds = RACE_SEED === undefined ? [1, 2] : [Number(RACE_SEED)];
  it.each(seeds)('SX-13: each fit, and no pod is bound twice: seed %i', { timeout: TIMEOUT_MS }, async (seed) => {
    // A thousand transactions conflict, so more pods show no more.
    const pods = Number(RACE_PODS ?? 200);
    const nodes = Number(RACE_NODES ?? 16);
    const { judge, ...counted } = await race({ seed, pods, nodes });
    const { kills, conflicts, repeated } = counted;
    if (RACE_SEED !== undefined)
      console.log(JSON.stringify({ seed, pods, nodes, bindings: judge.bindings, ...counted }));
    expect(judge.wrong).toEqual([]);
    // The race has happened, and the work is done: what is left does not fit.
    const [killsMin, conflictsMin, repeatedMin] = RACE_SEED === undefined ? [10, 500, 50] : [0, 0, 0];
    expect(kills).toBeGreaterThan(killsMin);
    expect(conflicts).toBeGreaterThan(conflictsMin);
    expect(repeated).toBeGreaterThan(repeatedMin);
    expect(judge.bindings).toBeGreaterThan(pods / 2);
    const waiting = [...judge.pods.values()].filter(({ nodeName, labels }) => nodeName === '' && !labels['alone']);
    const free = Math.max(
      ...[...judge.nodes.values()].map((node) => {
        if (node.isUnschedulable || node.taints.length > 0) return 0;
        const here = [...judge.pods.values()].filter((each) => each.nodeName === node.name && countsOnNode(each));
        return here.length >= node.podsMax
          ? 0
          : node.allocatable.cpu - here.reduce((sum, { requests }) => sum + requests.cpu, 0);
      }),
    );
    expect(waiting.filter(({ requests }) => requests.cpu <= free).map(({ key }) => key)).toEqual([]);
  });

  it.each(seeds)(
    'SX-13: pods that keep away from each other by zone: seed %i',
    { timeout: TIMEOUT_MS },
    async (seed) => {
      const { judge } = await race({ seed, pods: 240, nodes: 12, isCalm: true });
      expect(judge.wrong).toEqual([]);
      expect(judge.bindings).toBeGreaterThan(60);
    },
  );
});
