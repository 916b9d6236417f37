/**
 * Random histories of machines and their EC2 instances under the real controllers: what object-stream and cloud-node do over
 * the memory store, with an EC2 that answers late, fails, throttles and now and then overlooks an instance, and with ticks that
 * come twice, at once, late, half or not at all. Two laws are counted: no Node whose instance lives is ever deleted, and the
 * Node of a terminated instance is gone in time.
 *
 * What is true of an instance and what EC2 says of it are two things: EC2 may show the past (up to 20 s ago), so a young
 * instance is unknown at first; and it may overlook one for less than a period, which is what a second answer is for.
 */
import { type MemoryCloud, memoryCloud } from '../shared/adapters/memory/cloud.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { clusterObjects, shardsOf } from '../shared/api/storage/cluster-objects.ts';
import { hasShutdownTaint } from '../shared/controllers/cloud-node/watch-list.rule.ts';
import { type FleetControllers, fleetControllers } from '../shared/controllers/index.ts';
import type { ConditionStatus } from '../shared/domain/kubernetes.ts';
import type { Policy } from '../shared/domain/policy.ts';
import { slotOf } from '../shared/domain/tick.ts';
import { formatTime } from '../shared/kube/time.ts';
import type { KubeNode } from '../shared/kube/types.ts';
import type { Cloud, InstanceAnswer } from '../shared/ports/cloud.ts';
import { type ItemStore, StoreFault } from '../shared/ports/item-store.ts';
import { nodeHealthWrites } from '../shared/store/node-writes.ts';
import { type ObjectWrite, objectKey } from '../shared/store/object-store.ts';
import { seededFraction, seededUuid } from './seeded-random.ts';
import { passesObjectFilter } from './streams.ts';

const REGION = 'us-east-1';
const ZONE = 'us-east-1a';
const ACCOUNT_ID = '123456789012';
const TICKS = 60;
/** From here on nothing goes wrong with us or EC2 but for late answers, so that what is due must have happened by the end. */
const CALM_FROM_TICK = 45;
const ANSWER_DELAY_MAX_MS = 20_000;
/** EC2 overlooks an instance this rarely. */
const OVERLOOK_PAUSE_MS = 30_000;
/** What a Node of a terminated instance may take. */
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
  /** Answers heard by clean ticks until each Node of a terminated instance went; 0 where an event was first. */
  readonly pollsToGo: readonly number[];
  /** Nodes that carry it at the end. */
  readonly shutdownTaints: number;
}

interface Vm {
  readonly name: string;
  readonly instanceId: string;
  readonly launchedAtMs: number;
  ready: ConditionStatus;
  /** When its instance ended in truth, by whatever way. */
  endedAtMs: number | undefined;
  hasVanished: boolean;
  /** Not Ready, as told to the list, since. */
  listedSinceMs: number | undefined;
  polls: number;
  /** When EventBridge told of the end and EC2 was asked in vain or not yet. */
  eventAtMs: number | undefined;
  isGone: boolean;
}

export async function runCloudHistory(seed: number, policy: Policy): Promise<CloudHistory> {
  const random = seededFraction(seed);
  const chance = (share: number): boolean => random() < share;
  const between = (least: number, most: number): number => least + random() * (most - least);
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const startMs = Date.UTC(2026, 0, 1);
  let nowMs = startMs;
  const clock = { nowMs: () => nowMs };
  const source = { fraction: random, uuid: () => seededUuid(random) };
  const tables = memoryItemStore({ changesOf: ['objects'] });
  const objects = clusterObjects({ items: tables, clock, random: source });
  const shuttingDownMs = chance(0.5) ? 0 : between(0, 60_000);
  const cloud = memoryCloud({
    clock,
    region: REGION,
    accountId: ACCOUNT_ID,
    startingMs: between(0, 20_000),
    stoppingMs: between(0, 30_000),
    shuttingDownMs,
    answerDelayMs: between(0, ANSWER_DELAY_MAX_MS),
  });
  const isCalm = (): boolean => nowMs >= startMs + CALM_FROM_TICK * periodMs;
  const asked = overlookingCloud(cloud, { nowMs: () => nowMs, chance, periodMs, isCalm });
  const controllersOver = (items: ItemStore): FleetControllers =>
    fleetControllers({
      items,
      clock,
      random: source,
      policy,
      log: { debug: nobody, info: nobody, warn: nobody, error: nobody },
      meter: { add: nobody },
      cloud: asked,
    });
  const controllers = controllersOver(tables);

  const vms: Vm[] = [];
  const liveDeleted: string[] = [];
  const late: string[] = [];
  const pollsToGo: number[] = [];
  let deleted = 0;
  const events: { readonly atMs: number; readonly vm: Vm }[] = [];

  const commit = async (write: ObjectWrite): Promise<void> => {
    const outcome = await objects.commit({ writes: [write], extra: nodeHealthWrites(write, nowMs) });
    if (outcome.kind !== 'committed') throw new Error(`${write.kind} ${write.ref.name}: ${outcome.kind}`);
  };
  const keyOf = (vm: Vm) => objectKey(refOf(vm), shardsOf('nodes'));
  const refOf = ({ name }: Vm) => ({ resource: 'nodes', namespace: '', name });
  const statusOf = (ready: ConditionStatus) => ({
    conditions: [{ type: 'Ready', status: ready, lastTransitionTime: formatTime(nowMs) }],
  });
  async function register(vm: Vm): Promise<void> {
    await commit({
      kind: 'create',
      ref: refOf(vm),
      object: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: vm.name, uid: source.uuid(), creationTimestamp: formatTime(nowMs) },
        spec: { providerID: `aws:///${ZONE}/${vm.instanceId}` },
        status: statusOf(vm.ready),
      },
    });
  }
  async function say(vm: Vm, ready: ConditionStatus): Promise<void> {
    const previous = (await objects.get(refOf(vm))) as KubeNode | undefined;
    if (previous === undefined) return;
    vm.ready = ready;
    await commit({
      kind: 'update',
      ref: refOf(vm),
      object: { ...previous, status: { ...previous.status, ...statusOf(ready) } },
      previous,
    });
  }

  let streamed = 0;
  async function stream(): Promise<void> {
    for (let rounds = 0; rounds < STREAM_ROUNDS_MAX; rounds += 1) {
      const all = tables.changes('objects', streamed);
      const changes = all.filter(passesObjectFilter);
      streamed = all.at(-1)?.sequence ?? streamed;
      if (changes.length === 0) break;
      const outcome = await controllers.onObjectRecords(changes);
      if (outcome.faults.length > 0) throw outcome.faults[0];
      if (!isCalm() && chance(0.05)) await controllers.onObjectRecords(changes);
    }
    tables.forgetChanges('objects', streamed);
    for (const vm of vms) {
      const isListed = vm.ready !== 'True' && !vm.isGone;
      if (!isListed) vm.listedSinceMs = undefined;
      else vm.listedSinceMs ??= nowMs;
    }
  }

  /** Who went since, and whether that was right. */
  async function lookAround(): Promise<void> {
    for (const vm of vms) {
      if (vm.isGone) continue;
      // The item alone: nothing of it is to be read.
      if ((await tables.get(keyOf(vm), CONSISTENT)) !== undefined) continue;
      vm.isGone = true;
      deleted += 1;
      if (vm.endedAtMs === undefined) liveDeleted.push(`${vm.name} at ${(nowMs - startMs) / 1_000} s`);
      else if (!vm.hasVanished) pollsToGo.push(vm.polls);
    }
  }

  /** A machine or its instance does something. */
  async function live(vm: Vm): Promise<void> {
    if (vm.isGone) return;
    const deed = random();
    if (vm.endedAtMs !== undefined) {
      // A machine that is no more falls silent, and is marked.
      if (deed < 0.3 && vm.ready === 'True') await say(vm, 'Unknown');
    } else if (deed < 0.1) await say(vm, chance(0.5) ? 'Unknown' : 'False');
    else if (deed < 0.14) await say(vm, 'True');
    else if (deed < 0.17) cloud.stop(vm.instanceId);
    else if (deed < 0.21) cloud.start(vm.instanceId);
    else if (deed < 0.23) {
      if (cloud.terminate(vm.instanceId) === 'done') vm.endedAtMs = nowMs;
    } else if (deed < 0.24) {
      cloud.vanish(vm.instanceId);
      vm.endedAtMs = nowMs;
      vm.hasVanished = true;
    }
  }

  const launch = (index: number, ageMs: number): Vm => {
    const vm: Vm = {
      name: `vm-${index}`,
      instanceId: `i-${String(index).padStart(17, '0')}`,
      launchedAtMs: nowMs - ageMs,
      ready: chance(0.5) ? 'True' : 'False',
      endedAtMs: undefined,
      hasVanished: false,
      listedSinceMs: undefined,
      polls: 0,
      eventAtMs: undefined,
      isGone: false,
    };
    cloud.put({ instanceId: vm.instanceId, zone: ZONE, instanceType: 'm5.large', launchedAtMs: vm.launchedAtMs });
    vms.push(vm);
    return vm;
  };
  const count = 1 + Math.floor(random() * 3);
  for (let index = 0; index < count; index += 1) {
    await register(launch(index, chance(0.5) ? between(0, 400_000) : between(400_000, 4_000_000)));
  }
  await stream();

  /** EC2 must by now say of it what is true, to whoever asks. */
  const isVisiblyTerminated = (vm: Vm): boolean =>
    vm.endedAtMs !== undefined && !vm.hasVanished && nowMs - vm.endedAtMs >= ANSWER_DELAY_MAX_MS;

  /** @returns whether EC2 answered and nothing went wrong */
  async function tickOnce(): Promise<boolean> {
    const slot = slotOf(nowMs, policy.nodeMonitorPeriodSeconds);
    const failing = !isCalm() && chance(0.15);
    if (failing) cloud.fail(chance(0.5) ? 'Throttling' : chance(0.5) ? 'InternalError' : 'timeout');
    const fate = isCalm() ? 1 : random();
    let isClean = !failing;
    if (fate < 0.08) isClean = false;
    else if (fate < 0.2) {
      isClean = false;
      const dying = controllersOver(killedAt(tables, 1 + Math.floor(random() * 12), chance(0.5)));
      await dying.tickCloudNode(slot).catch(() => undefined);
    } else if (fate < 0.3) {
      await Promise.all([controllers.tickCloudNode(slot), controllersOver(tables).tickCloudNode(slot)]);
    } else if (fate < 0.4) {
      const vm = vms[Math.floor(random() * vms.length)]!;
      await Promise.all([controllers.tickCloudNode(slot), controllersOver(tables).onInstanceChange(vm.instanceId)]);
    } else {
      await controllers.tickCloudNode(slot);
      if (chance(0.1)) await controllers.tickCloudNode(slot);
    }
    cloud.fail(null);
    return isClean;
  }

  async function deliverEvents(untilMs: number): Promise<void> {
    for (const { instanceId } of cloud.takeStateChanges()) {
      const vm = vms.find((each) => each.instanceId === instanceId)!;
      if (chance(0.3)) continue;
      events.push({ atMs: nowMs + (chance(0.7) ? 0 : between(0, 30_000)), vm });
      if (chance(0.1)) events.push({ atMs: nowMs, vm });
    }
    events.sort((one, other) => one.atMs - other.atMs);
    while (events[0] !== undefined && events[0].atMs <= untilMs) {
      const { atMs, vm } = events.shift()!;
      nowMs = Math.max(nowMs, atMs);
      await controllers.onInstanceChange(vm.instanceId);
      if (isVisiblyTerminated(vm) && vm.listedSinceMs !== undefined) vm.eventAtMs ??= nowMs;
      await lookAround();
    }
  }

  for (let tick = 0; tick < TICKS; tick += 1) {
    const tickAtMs = startMs + tick * periodMs;
    nowMs = tickAtMs;
    if (chance(0.05)) cloud.setAnswerDelay(between(0, ANSWER_DELAY_MAX_MS));
    if (vms.length < 3 && chance(0.01)) await register(launch(vms.length, 0));
    for (const vm of vms) await live(vm);
    if (isCalm() || chance(0.9)) await stream();
    if (!isCalm() && chance(0.2)) nowMs += between(0, periodMs - 1);
    const candidates = vms.filter((vm) => isVisiblyTerminated(vm) && vm.listedSinceMs !== undefined && !vm.isGone);
    if (await tickOnce()) for (const vm of candidates) vm.polls += 1;
    await lookAround();
    for (const vm of candidates) {
      if (vm.isGone) continue;
      const afterEventMs = vm.eventAtMs === undefined ? 0 : nowMs - vm.eventAtMs;
      const isLate = vm.polls >= POLLS_MAX || (isCalm() && afterEventMs > PERIODS_AFTER_EVENT_MAX * periodMs);
      if (isLate && vm.ready !== 'True') late.push(`${vm.name} at ${(nowMs - startMs) / 1_000} s, ${vm.polls} polls`);
    }
    await deliverEvents(tickAtMs + periodMs - 1);
    if (isCalm() || chance(0.9)) await stream();
  }
  const { describeInstances: describeCalls } = cloud.calls();
  const left = (await objects.getMany(vms.map(refOf))) as (KubeNode | undefined)[];
  const shutdownTaints = left.filter((node) => hasShutdownTaint(node?.spec?.taints ?? [])).length;
  return {
    seed,
    nodes: vms.length,
    ticks: TICKS,
    describeCalls,
    liveDeleted,
    late,
    deleted,
    pollsToGo,
    shutdownTaints,
  };
}

const CONSISTENT = { consistent: true } as const;
const nobody = (): void => {};
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
