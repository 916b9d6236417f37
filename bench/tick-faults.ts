/**
 * Time from a machine's last heartbeat to Ready=Unknown while schedules, messages and wake-ups of ticks are late, missing
 * or doubled, on virtual time: node-monitor over its chain, watchdog and wake-ups as they are deployed. Each fault lasts
 * for half an hour. Machines that are not marked meanwhile are marked after it: the bench waits for them, within a bound.
 */
import { fleetControllers } from '../shared/controllers/index.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import type { ItemStore } from '../shared/ports/item-store.ts';
import { FAULT_NAMES, type FaultName, type FaultPlan } from '../simulation/faults/catalogue.ts';
import { faultyTicks } from '../simulation/faults/faulty-ticks.ts';
import { lambdaFunctions, type Process, type Program } from '../simulation/faults/processes.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import { type VirtualTime, virtualTime } from '../simulation/virtual-time.ts';
import { START_MS, settledFleet } from '../test/support/controlled-fleet.ts';
import { type Benchmark, percentile, rounded } from './benchmark.ts';

const MACHINES = 200;
/** Machines that stop one after the other. */
const SILENT = 100;
/** How long a fault lasts, and how long the bench waits after it. */
const MINUTES = 30;
const MINUTES_AFTER = 6;
const SEED = 77;
const ZONES = 4;
/** Of each call to the tables. */
const CALL_MS = 5;
const LOOK_EVERY_MS = 100;

/** `severity`: share of the worst (catalogue.ts). */
interface Case {
  readonly faults: readonly FaultName[];
  readonly severity?: number;
}

const CASES: readonly Case[] = [
  { faults: [] },
  { faults: ['scheduleLate'] },
  { faults: ['scheduleMissing'] },
  { faults: ['scheduleTwice'] },
  { faults: ['scheduleLate', 'scheduleMissing', 'scheduleTwice'] },
  { faults: ['wakeLost', 'wakeTwice'] },
  { faults: ['twice', 'atOnce'] },
  // One message in a hundred, in ten, and three in ten.
  { faults: ['lostTicks'], severity: 1 / 30 },
  { faults: ['lostTicks'], severity: 1 / 3 },
  { faults: ['lostTicks'] },
  // Seven messages in a hundred, and in ten.
  { faults: ['lateTicks'], severity: 1 / 10 },
  { faults: ['lateTicks'] },
];

export const tickFaults: Benchmark = {
  name: 'tick-faults',
  about: 'last heartbeat to Ready=Unknown while schedules, messages and wake-ups are late, missing or doubled',
  async run(report) {
    for (const { faults, severity = 1 } of CASES) {
      report({
        faults: faults.join('+') || 'none',
        severity: rounded(severity, 2),
        ...(await detect(faults, severity)),
      });
    }
  },
};

async function detect(faults: readonly FaultName[], severity: number) {
  const random = seededFraction(SEED);
  const zones = Object.fromEntries(Array.from({ length: ZONES }, (_, zone) => [`z${zone}`, MACHINES / ZONES]));
  const { fleet, names } = await settledFleet(zones);
  const time = virtualTime(START_MS);
  const endMs = START_MS + MINUTES * 60_000;
  const plan = constantPlan({
    active: new Set(faults),
    severity: () => (time.nowMs() < endMs ? severity : 0),
    random: seededFraction(SEED + 1),
  });
  const runs = { ran: 0, messages: 0 };
  const ticks = faultyTicks({
    ...{ time, plan, fraction: random, policy: defaultPolicy, startMs: START_MS },
    onFault: (name, causes) => {
      throw new AggregateError(causes, `${name} failed`);
    },
    onSent: () => {
      if (time.nowMs() < endMs) runs.messages += 1;
    },
    onReport: ({ name, kind }) => {
      if (name === 'node-monitor' && kind === 'ran' && time.nowMs() < endMs) runs.ran += 1;
    },
  });
  const items = slowed(fleet.tables, time);
  const compose = (process: Process): Program => ({
    clock: process.clock,
    controllers: fleetControllers({
      ...{ items, clock: process.clock, policy: defaultPolicy },
      random: { fraction: random, uuid: () => seededUuid(random) },
      log: { debug() {}, info() {}, warn() {}, error() {} },
      meter: { add() {} },
      probe: { beat: async () => ({ kind: 'accepted' }) },
      tickQueue: ticks.queueOf(process),
      waker: ticks.wakerOf(process),
      pause: (milliseconds) => time.sleep(milliseconds),
    }),
    get endpoint(): never {
      throw new Error('no endpoint is simulated');
    },
  });
  ticks.start(lambdaFunctions({ time, plan, fraction: random, policy: defaultPolicy, compose }));

  const lastBeatMs = new Map<string, number>();
  const silentFromMs = new Map(
    names.slice(0, SILENT).map((name) => [name, START_MS + (2 + (MINUTES - 6) * random()) * 60_000]),
  );
  const beat = async (name: string): Promise<void> => {
    if (time.nowMs() >= (silentFromMs.get(name) ?? Number.POSITIVE_INFINITY)) return;
    fleet.at((time.nowMs() - START_MS) / 1_000);
    lastBeatMs.set(name, time.nowMs());
    time.after(defaultPolicy.beatIntervalSeconds * 1_000, () => void beat(name));
    await fleet.beat(name);
  };
  for (const name of names) time.after(random() * 10_000, () => void beat(name));

  const seconds = new Map<string, number>();
  let marksMeanwhile = 0;
  let falseMarks = 0;
  let lastMarkMs = START_MS;
  const look = async (): Promise<void> => {
    for (const name of names) {
      if (seconds.has(name) || (await fleet.ready(name)) !== 'Unknown') continue;
      if (silentFromMs.has(name) && time.nowMs() >= silentFromMs.get(name)!) {
        seconds.set(name, (time.nowMs() - lastBeatMs.get(name)!) / 1_000);
        lastMarkMs = time.nowMs();
        if (lastMarkMs < endMs) marksMeanwhile += 1;
      } else falseMarks += 1;
    }
    time.after(LOOK_EVERY_MS, () => void look());
  };
  time.after(60_000, () => void look());
  await time.run(endMs + MINUTES_AFTER * 60_000, () => false);
  const all = [...seconds.values()];
  return {
    cases: SILENT,
    markedWhileItLasted: marksMeanwhile,
    markedAfterIt: all.length - marksMeanwhile,
    ...(lastMarkMs > endMs ? { lastMarkAfterItSeconds: rounded((lastMarkMs - endMs) / 1_000) } : {}),
    p50Seconds: rounded(percentile(all, 0.5)),
    p99Seconds: rounded(percentile(all, 0.99)),
    maxSeconds: rounded(Math.max(...all)),
    falseMarks,
    ticksPerMinute: rounded(runs.ran / MINUTES),
    messagesPerMinute: rounded(runs.messages / MINUTES),
  };
}

/** The answer of each call comes after some virtual time. */
function slowed(items: ItemStore, time: VirtualTime): ItemStore {
  const after = async <T>(run: () => Promise<T>): Promise<T> => {
    await time.sleep(CALL_MS);
    return run();
  };
  return {
    get: (...of) => after(() => items.get(...of)),
    getMany: (...of) => after(() => items.getMany(...of)),
    query: (...of) => after(() => items.query(...of)),
    scan: (...of) => after(() => items.scan(...of)),
    write: (...of) => after(() => items.write(...of)),
    transact: (...of) => after(() => items.transact(...of)),
  };
}

/** `severity`: of every fault, at this moment. */
function constantPlan(of: {
  readonly active: ReadonlySet<FaultName>;
  readonly severity: () => number;
  readonly random: () => number;
}): FaultPlan {
  const { active, severity, random } = of;
  const counts = Object.fromEntries(FAULT_NAMES.map((name) => [name, 0])) as Record<FaultName, number>;
  const plan: FaultPlan = {
    has: (name) => active.has(name),
    severity: (name) => (active.has(name) ? severity() : 0),
    strikes(name, share) {
      if (!active.has(name) || severity() === 0 || random() >= share * severity()) return false;
      counts[name] += 1;
      return true;
    },
    fraction: () => random(),
    count: (name) => {
      counts[name] += 1;
    },
    counts,
    calmSinceMs: () => undefined,
    last: () => undefined,
    episodes: () => [],
    apart: () => plan,
  };
  return plan;
}
