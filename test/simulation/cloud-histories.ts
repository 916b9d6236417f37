/**
 * Random histories of machines and their EC2 instances under the real controllers: what object-stream and cloud-node do
 * over the memory store, with an EC2 that answers late, fails, throttles and now and then overlooks an instance, and
 * with ticks that come twice, at once, late, half or not at all. Two laws are counted: no Node of a living instance is
 * ever deleted, and the Node of a terminated instance is deleted in time.
 *
 * What is true of an instance and what EC2 says of it are two things: EC2 may show the past (up to 20 s ago), so a
 * young instance is unknown at first; and it may overlook one for less than a period, which is what a second answer is
 * for.
 */
import { type MemoryCloud, memoryCloud } from '../../demo/ec2/cloud.ts';
import { passesObjectFilter } from '../../server/changes/change-filters.ts';
import { type FleetControllers, fleetControllers } from '../../server/fleet-controllers.ts';
import type { Clock, RandomSource } from '../../shared/clock.ts';
import type { Cloud, InstanceAnswer } from '../../shared/fleet/instances/cloud.ts';
import { hasShutdownTaint } from '../../shared/fleet/instances/watch-list.rule.ts';
import { nodeHealthWrites } from '../../shared/fleet/nodes/change-node.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { clusterObjects, shardsOf } from '../../shared/kinds/resources.ts';
import type { KubeNode, NodeStatus, ObjectRef } from '../../shared/kinds/types.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { type ItemKey, type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type ObjectStore, type ObjectWrite, objectKey } from '../../shared/store/object-store.ts';
import { slotOf } from '../../shared/ticks/tick.ts';
import { seededFraction, seededUuid } from '../../simulation/seeded-random.ts';

const REGION = 'us-east-1';
const ZONE = 'us-east-1a';
const ACCOUNT_ID = '123456789012';
const TICKS = 60;
/** From this tick on the only fault is late answers: due deletions must happen before the end. */
const CALM_FROM_TICK = 45;
const ANSWER_DELAY_MAX_MS = 20_000;
/** EC2 overlooks an instance this rarely. */
const OVERLOOK_PAUSE_MS = 30_000;
/** Polls until the Node of a terminated instance is deleted, at most. */
export const POLLS_MAX = 3;
export const PERIODS_AFTER_EVENT_MAX = 2;

export interface CloudHistory {
  readonly seed: number;
  readonly nodes: number;
  readonly ticks: number;
  readonly describeCalls: number;
  /** Nodes that were deleted while their instance lived: the law says none. */
  readonly liveDeleted: readonly string[];
  /** Nodes of terminated instances that outlived their time: the law says none. */
  readonly late: readonly string[];
  readonly deleted: number;
  /** Answers that clean ticks received until each Node of a terminated instance was deleted; 0: an event was first. */
  readonly pollsToGo: readonly number[];
  /** Nodes that carry it at the end. */
  readonly shutdownTaints: number;
}

interface Vm {
  readonly name: string;
  readonly instanceId: string;
  readonly launchedAtMs: number;
  ready: ConditionStatus;
  /** When its instance terminated or vanished. */
  endedAtMs: number | undefined;
  hasVanished: boolean;
  /** On the list as not Ready since then. */
  listedSinceMs: number | undefined;
  polls: number;
  /** When EventBridge reported the end and EC2 did not confirm it yet. */
  eventAtMs: number | undefined;
  isGone: boolean;
}

export async function runCloudHistory(seed: number, policy: Policy): Promise<CloudHistory> {
  return await new CloudHistoryRun(seed, policy).run();
}

class CloudHistoryRun {
  readonly #seed: number;
  readonly #policy: Policy;
  readonly #random: () => number;
  readonly #periodMs: number;
  readonly #startMs = Date.UTC(2026, 0, 1);
  #nowMs: number;
  readonly #clock: Clock;
  readonly #source: RandomSource;
  readonly #tables = memoryItemStore({ changesOf: ['objects'] });
  readonly #objects: ObjectStore;
  readonly #shuttingDownMs: number;
  readonly #cloud: MemoryCloud;
  readonly #asked: Cloud;
  readonly #controllers: FleetControllers;
  readonly #vms: Vm[] = [];
  readonly #liveDeleted: string[] = [];
  readonly #late: string[] = [];
  readonly #pollsToGo: number[] = [];
  #deleted = 0;
  readonly #events: { readonly atMs: number; readonly vm: Vm }[] = [];
  #streamed = 0;

  constructor(seed: number, policy: Policy) {
    this.#seed = seed;
    this.#policy = policy;
    this.#random = seededFraction(this.#seed);
    this.#periodMs = this.#policy.nodeMonitorPeriodSeconds * 1_000;
    this.#nowMs = this.#startMs;
    this.#clock = { nowMs: () => this.#nowMs };
    this.#source = { fraction: this.#random, uuid: () => seededUuid(this.#random) };
    this.#objects = clusterObjects({ items: this.#tables, clock: this.#clock, random: this.#source });
    this.#shuttingDownMs = this.#chance(0.5) ? 0 : this.#between(0, 60_000);
    this.#cloud = memoryCloud({
      clock: this.#clock,
      region: REGION,
      accountId: ACCOUNT_ID,
      startingMs: this.#between(0, 20_000),
      stoppingMs: this.#between(0, 30_000),
      shuttingDownMs: this.#shuttingDownMs,
      answerDelayMs: this.#between(0, ANSWER_DELAY_MAX_MS),
    });
    this.#asked = overlookingCloud(this.#cloud, {
      nowMs: () => this.#nowMs,
      chance: (share) => this.#chance(share),
      periodMs: this.#periodMs,
      isCalm: () => this.#isCalm(),
    });
    this.#controllers = this.#controllersOver(this.#tables);
  }

  async run(): Promise<CloudHistory> {
    await this.#registerFirstNodes();
    await this.#stream();
    for (let tick = 0; tick < TICKS; tick += 1) await this.#period(this.#startMs + tick * this.#periodMs);
    return this.#summary();
  }

  async #registerFirstNodes(): Promise<void> {
    const count = 1 + Math.floor(this.#random() * 3);
    for (let index = 0; index < count; index += 1) {
      const ageMs = this.#chance(0.5) ? this.#between(0, 400_000) : this.#between(400_000, 4_000_000);
      await this.#register(this.#launch(index, ageMs));
    }
  }

  /** Instances change, the stream and a tick run, then events of EC2 arrive until the next tick. */
  async #period(tickAtMs: number): Promise<void> {
    this.#nowMs = tickAtMs;
    if (this.#chance(0.05)) this.#cloud.setAnswerDelay(this.#between(0, ANSWER_DELAY_MAX_MS));
    if (this.#vms.length < 3 && this.#chance(0.01)) await this.#register(this.#launch(this.#vms.length, 0));
    for (const vm of this.#vms) await this.#live(vm);
    if (this.#isCalm() || this.#chance(0.9)) await this.#stream();
    if (!this.#isCalm() && this.#chance(0.2)) this.#nowMs += this.#between(0, this.#periodMs - 1);
    const candidates = this.#vms.filter(
      (vm) => this.#isVisiblyTerminated(vm) && vm.listedSinceMs !== undefined && !vm.isGone,
    );
    if (await this.#tickOnce()) for (const vm of candidates) vm.polls += 1;
    await this.#recordDeletions();
    for (const vm of candidates)
      if (this.#isLate(vm)) this.#late.push(`${vm.name} at ${this.#elapsed()}, ${vm.polls} polls`);
    await this.#deliverEvents(tickAtMs + this.#periodMs - 1);
    if (this.#isCalm() || this.#chance(0.9)) await this.#stream();
  }

  #isLate(vm: Vm): boolean {
    if (vm.isGone || vm.ready === 'True') return false;
    const afterEventMs = vm.eventAtMs === undefined ? 0 : this.#nowMs - vm.eventAtMs;
    return vm.polls >= POLLS_MAX || (this.#isCalm() && afterEventMs > PERIODS_AFTER_EVENT_MAX * this.#periodMs);
  }

  #elapsed(): string {
    return `${(this.#nowMs - this.#startMs) / 1_000} s`;
  }

  async #summary(): Promise<CloudHistory> {
    const refs = this.#vms.map((vm) => this.#refOf(vm));
    const left = (await this.#objects.getMany(refs)) as (KubeNode | undefined)[];
    return {
      seed: this.#seed,
      nodes: this.#vms.length,
      ticks: TICKS,
      describeCalls: this.#cloud.calls().describeInstances,
      liveDeleted: this.#liveDeleted,
      late: this.#late,
      deleted: this.#deleted,
      pollsToGo: this.#pollsToGo,
      shutdownTaints: left.filter((node) => hasShutdownTaint(node?.spec?.taints ?? [])).length,
    };
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #between(least: number, most: number): number {
    return least + this.#random() * (most - least);
  }

  #isCalm(): boolean {
    return this.#nowMs >= this.#startMs + CALM_FROM_TICK * this.#periodMs;
  }

  #controllersOver(items: ItemStore): FleetControllers {
    return fleetControllers({
      items,
      clock: this.#clock,
      random: this.#source,
      policy: this.#policy,
      log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      meter: { add: ignore },
      cloud: this.#asked,
    });
  }

  async #commit(write: ObjectWrite): Promise<void> {
    const outcome = await this.#objects.commit({ writes: [write], extra: nodeHealthWrites(write, this.#nowMs) });
    if (outcome.kind !== 'committed') throw new Error(`${write.kind} ${write.ref.name}: ${outcome.kind}`);
  }

  #keyOf(vm: Vm): ItemKey {
    return objectKey(this.#refOf(vm), shardsOf('nodes'));
  }

  #refOf({ name }: Vm): ObjectRef {
    return { resource: 'nodes', namespace: '', name };
  }

  #statusOf(ready: ConditionStatus): NodeStatus {
    return {
      conditions: [{ type: 'Ready', status: ready, lastTransitionTime: formatTime(this.#nowMs) }],
    };
  }

  async #register(vm: Vm): Promise<void> {
    await this.#commit({
      kind: 'create',
      ref: this.#refOf(vm),
      object: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: vm.name, uid: this.#source.uuid(), creationTimestamp: formatTime(this.#nowMs) },
        spec: { providerID: `aws:///${ZONE}/${vm.instanceId}` },
        status: this.#statusOf(vm.ready),
      },
    });
  }

  async #reportReady(vm: Vm, ready: ConditionStatus): Promise<void> {
    const previous = (await this.#objects.get(this.#refOf(vm))) as KubeNode | undefined;
    if (previous === undefined) return;
    vm.ready = ready;
    await this.#commit({
      kind: 'update',
      ref: this.#refOf(vm),
      object: { ...previous, status: { ...previous.status, ...this.#statusOf(ready) } },
      previous,
    });
  }

  async #stream(): Promise<void> {
    for (let rounds = 0; rounds < STREAM_ROUNDS_MAX; rounds += 1) {
      const all = this.#tables.changes('objects', this.#streamed);
      const changes = all.filter(passesObjectFilter);
      this.#streamed = all.at(-1)?.sequence ?? this.#streamed;
      if (changes.length === 0) break;
      const outcome = await this.#controllers.onObjectRecords(changes);
      if (outcome.faults.length > 0) throw outcome.faults[0];
      if (!this.#isCalm() && this.#chance(0.05)) await this.#controllers.onObjectRecords(changes);
    }
    this.#tables.forgetChanges('objects', this.#streamed);
    for (const vm of this.#vms) {
      const isListed = vm.ready !== 'True' && !vm.isGone;
      if (!isListed) vm.listedSinceMs = undefined;
      else vm.listedSinceMs ??= this.#nowMs;
    }
  }

  /** Who went since, and whether that was right. */
  async #recordDeletions(): Promise<void> {
    for (const vm of this.#vms) {
      if (vm.isGone) continue;
      // The item alone: nothing of it is to be read.
      if ((await this.#tables.get(this.#keyOf(vm), CONSISTENT)) !== undefined) continue;
      vm.isGone = true;
      this.#deleted += 1;
      if (vm.endedAtMs === undefined) this.#liveDeleted.push(`${vm.name} at ${this.#elapsed()}`);
      else if (!vm.hasVanished) this.#pollsToGo.push(vm.polls);
    }
  }

  /** A machine or its instance does something. */
  async #live(vm: Vm): Promise<void> {
    if (vm.isGone) return;
    const deed = this.#random();
    if (vm.endedAtMs !== undefined) {
      // The machine of a terminated instance sends nothing and is marked.
      if (deed < 0.3 && vm.ready === 'True') await this.#reportReady(vm, 'Unknown');
    } else if (deed < 0.1) await this.#reportReady(vm, this.#chance(0.5) ? 'Unknown' : 'False');
    else if (deed < 0.14) await this.#reportReady(vm, 'True');
    else if (deed < 0.17) this.#cloud.stop(vm.instanceId);
    else if (deed < 0.21) this.#cloud.start(vm.instanceId);
    else if (deed < 0.23) {
      if (this.#cloud.terminate(vm.instanceId) === 'done') vm.endedAtMs = this.#nowMs;
    } else if (deed < 0.24) {
      this.#cloud.vanish(vm.instanceId);
      vm.endedAtMs = this.#nowMs;
      vm.hasVanished = true;
    }
  }

  #launch(index: number, ageMs: number): Vm {
    const vm: Vm = {
      name: `vm-${index}`,
      instanceId: `i-${String(index).padStart(17, '0')}`,
      launchedAtMs: this.#nowMs - ageMs,
      ready: this.#chance(0.5) ? 'True' : 'False',
      endedAtMs: undefined,
      hasVanished: false,
      listedSinceMs: undefined,
      polls: 0,
      eventAtMs: undefined,
      isGone: false,
    };
    this.#cloud.put({ instanceId: vm.instanceId, zone: ZONE, instanceType: 'm5.large', launchedAtMs: vm.launchedAtMs });
    this.#vms.push(vm);
    return vm;
  }

  /** EC2 must by now say of it what is true, to whoever asks. */
  #isVisiblyTerminated(vm: Vm): boolean {
    return vm.endedAtMs !== undefined && !vm.hasVanished && this.#nowMs - vm.endedAtMs >= ANSWER_DELAY_MAX_MS;
  }

  /** @returns whether EC2 answered and nothing went wrong */
  async #tickOnce(): Promise<boolean> {
    const slot = slotOf(this.#nowMs, this.#policy.nodeMonitorPeriodSeconds);
    const failing = !this.#isCalm() && this.#chance(0.15);
    if (failing) this.#cloud.fail(this.#chance(0.5) ? 'Throttling' : this.#chance(0.5) ? 'InternalError' : 'timeout');
    const fate = this.#isCalm() ? 1 : this.#random();
    let isClean = !failing;
    if (fate < 0.08) isClean = false;
    else if (fate < 0.2) {
      isClean = false;
      const dying = this.#controllersOver(
        killedAt(this.#tables, 1 + Math.floor(this.#random() * 12), this.#chance(0.5)),
      );
      await dying.tickCloudNode(slot).catch(() => undefined);
    } else if (fate < 0.3) {
      await Promise.all([
        this.#controllers.tickCloudNode(slot),
        this.#controllersOver(this.#tables).tickCloudNode(slot),
      ]);
    } else if (fate < 0.4) {
      const vm = this.#vms[Math.floor(this.#random() * this.#vms.length)]!;
      await Promise.all([
        this.#controllers.tickCloudNode(slot),
        this.#controllersOver(this.#tables).onInstanceChange(vm.instanceId),
      ]);
    } else {
      await this.#controllers.tickCloudNode(slot);
      if (this.#chance(0.1)) await this.#controllers.tickCloudNode(slot);
    }
    this.#cloud.fail(null);
    return isClean;
  }

  async #deliverEvents(untilMs: number): Promise<void> {
    for (const { instanceId } of this.#cloud.takeStateChanges()) {
      const vm = this.#vms.find((each) => each.instanceId === instanceId)!;
      if (this.#chance(0.3)) continue;
      this.#events.push({ atMs: this.#nowMs + (this.#chance(0.7) ? 0 : this.#between(0, 30_000)), vm });
      if (this.#chance(0.1)) this.#events.push({ atMs: this.#nowMs, vm });
    }
    this.#events.sort((one, other) => one.atMs - other.atMs);
    while (this.#events[0] !== undefined && this.#events[0].atMs <= untilMs) {
      const { atMs, vm } = this.#events.shift()!;
      this.#nowMs = Math.max(this.#nowMs, atMs);
      await this.#controllers.onInstanceChange(vm.instanceId);
      if (this.#isVisiblyTerminated(vm) && vm.listedSinceMs !== undefined) vm.eventAtMs ??= this.#nowMs;
      await this.#recordDeletions();
    }
  }
}

const CONSISTENT = { consistent: true } as const;
const ignore = (): void => {};
const STREAM_ROUNDS_MAX = 20;

/** EC2, but now and then it overlooks an instance for less than a period, at most once in OVERLOOK_PAUSE_MS. */
function overlookingCloud(
  cloud: MemoryCloud,
  at: {
    readonly nowMs: () => number;
    readonly chance: (share: number) => boolean;
    readonly periodMs: number;
    readonly isCalm: () => boolean;
  },
): Cloud {
  let overlooksFromMs = Number.NEGATIVE_INFINITY;
  return {
    ...cloud,
    async describeInstances(instances) {
      const answers = await cloud.describeInstances(instances);
      const nowMs = at.nowMs();
      if (nowMs - overlooksFromMs >= OVERLOOK_PAUSE_MS && !at.isCalm() && at.chance(0.1)) overlooksFromMs = nowMs;
      if (nowMs - overlooksFromMs >= at.periodMs) return answers;
      return new Map(
        [...answers].map(([id, answer]): [string, InstanceAnswer] =>
          answer.answer.kind === 'found' ? [id, { answer: { kind: 'notFound' } }] : [id, answer],
        ),
      );
    },
  };
}

/** The tables to a process that dies at its n-th call; `lastHappens`: that call still does its work. */
function killedAt(items: ItemStore, atCall: number, lastHappens: boolean): ItemStore {
  let calls = 0;
  const guarded =
    <Arguments extends unknown[], Answer>(call: (...args: Arguments) => Promise<Answer>) =>
    async (...args: Arguments): Promise<Answer> => {
      calls += 1;
      if (calls === atCall && lastHappens) await call(...args);
      if (calls >= atCall) throw new StoreFault('unreachable', 'the process is dead', { retryable: false });
      return call(...args);
    };
  return {
    get: guarded(items.get.bind(items)),
    getMany: guarded(items.getMany.bind(items)),
    query: guarded(items.query.bind(items)),
    scan: guarded(items.scan.bind(items)),
    write: guarded(items.write.bind(items)),
    transact: guarded(items.transact.bind(items)),
  };
}
