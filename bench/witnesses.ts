/**
 * How fast a site notices that one of its machines lost its power (docs/witnesses.md), on virtual time: the agent's own
 * loops, relay and witnesses, the real heartbeat handler and API, and node-monitor with its looks between ticks, over
 * tables in memory. A tick's message is delivered as by SQS: after whole seconds, and up to 250 ms late.
 *
 * Machines that go on must never be marked: each such mark is counted.
 */
import type { TickQueue } from '../functions/node-monitor/chain.ts';
import { isRenewal } from '../server/routes.ts';
import { LEASE, lastSpokeAtMs, nodeHealthOf } from '../shared/fleet/nodes/health.ts';
import { defaultPolicy, type Policy, steadySeconds } from '../shared/fleet/policy.ts';
import { readReports } from '../shared/fleet/witness-report-store.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { createStreams } from '../simulation/streams.ts';
import { conflictingStore } from '../test/support/conflicting-store.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { type StormTime, stormTime } from './storm-time.ts';
import { apiOf, controllersOf, heartbeatOf, type SystemOptions } from './system.ts';
import { WatchedSite } from './watched-site.ts';

const START_MS = Date.UTC(2026, 0, 1);
const SEED = 63;
const SIZES = [3, 10, 100];
const CASES = 300;
/** Machines of all sites at a time. */
const MACHINES_MAX = 120;
const TRANSACTION_MS = 10;
/** A message is delivered up to this time after it is due, as in the simulation. Milliseconds. */
const DELIVERED_MAX_MS = 250;
const TICK_BUDGET_MS = 25_000;
/** Heartbeats of a site become one batch meanwhile (docs/relay.md). Milliseconds. */
const CONVERGED_MS = 600_000;
/** Of a large site several machines fail one after the other. Between them no report counts. Milliseconds. */
const BETWEEN_MS = 60_000;
const SHARE_PER_ROUND = 0.05;
/** More than any interval between heartbeats. Milliseconds. */
const PHASE_MS = 12_000;
/** A machine that is not marked until then is no case. Milliseconds. */
const GIVEN_UP_MS = 90_000;

export const witnesses: Benchmark = {
  name: 'witnesses',
  about: 'power loss of a machine in a site of 3, 10 or 100 to Ready=Unknown, with witnesses (virtual time)',
  usage: '[--machines 3,10,100] [--cases 300] [--grace-seconds 8; 0: without witnesses]',
  onlyByName: true,
  smallest: ['--machines', '3', '--cases', '2'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { machines: text, cases: text, 'grace-seconds': text });
    const sizes = wholeNumbers('machines', values.machines, { least: 3, most: 1_000, otherwise: SIZES });
    const cases = wholeNumber('cases', values.cases, { least: 1, most: 100_000, otherwise: CASES });
    const otherwise = defaultPolicy.witnessGraceSeconds;
    const witnessGraceSeconds = wholeNumber('grace-seconds', values['grace-seconds'], {
      least: 0,
      most: 40,
      otherwise,
    });
    for (const machines of sizes)
      await measure(report, { machines, cases, policy: { ...defaultPolicy, witnessGraceSeconds } });
  },
};

interface Options {
  readonly machines: number;
  readonly cases: number;
  readonly policy: Policy;
}

interface Mark {
  /** When the machine began to send its last heartbeat, and when that was stored. Their clocks are the same. */
  readonly beganAtMs: number;
  readonly spokeAtMs: number;
  readonly markedAtMs: number;
  /** When the second of two reports was stored; undefined: there were none. */
  readonly accusedAtMs: number | undefined;
}

interface Failure extends Mark {
  readonly failedAtMs: number;
}

async function measure(report: Report, { machines, cases, policy }: Options): Promise<void> {
  const time = stormTime(START_MS);
  const fraction = seededFraction(SEED + machines);
  const cluster = startCluster(time, fraction, policy);
  const failures: Failure[] = [];
  const count = Math.max(1, Math.min(cases, Math.floor(MACHINES_MAX / machines)));
  const sites = Array.from({ length: count }, (_, index) => {
    const zone = `site-${index}`;
    return new WatchedSite({ zone, machines, serve: cluster.serve, time, fraction });
  });
  const perRound = Math.max(1, Math.floor(machines * SHARE_PER_ROUND));
  let left = cases;
  let unmarked = 0;

  async function story(site: WatchedSite): Promise<void> {
    for (const name of [site.relayName, ...site.members]) {
      void time.sleep(PHASE_MS * fraction()).then(() => site.start(name));
    }
    await time.sleep(CONVERGED_MS * (1 + fraction()));
    for (let turn = 0; left > 0; turn += 1) {
      left -= 1;
      await time.sleep((turn % perRound === 0 ? CONVERGED_MS : BETWEEN_MS) + PHASE_MS * fraction());
      const name = site.members[turn % site.members.length]!;
      await site.powerOff(name);
      const failedAtMs = time.nowMs();
      const mark = await cluster.marked(name, GIVEN_UP_MS);
      if (mark === undefined) unmarked += 1;
      else failures.push({ failedAtMs, ...mark });
      await time.sleep(PHASE_MS * fraction());
      site.start(name);
    }
  }

  let isOver = false;
  void Promise.all(sites.map(story)).then(() => {
    isOver = true;
  });
  const fromMs = time.nowMs();
  while (!isOver) await time.passUntil(time.nowMs() + 1_000);
  const seconds = (times: (each: Failure) => number): readonly number[] => failures.map((each) => times(each) / 1_000);
  const latencies = seconds(({ markedAtMs, failedAtMs }) => markedAtMs - failedAtMs);
  report({
    machines,
    sites: sites.length,
    witnessGraceSeconds: policy.witnessGraceSeconds,
    cases: failures.length,
    p50Seconds: rounded(percentile(latencies, 0.5)),
    p99Seconds: rounded(percentile(latencies, 0.99)),
    maxSeconds: rounded(Math.max(...latencies)),
    // Since the last stored heartbeat: never less than the floor.
    leastSilentSeconds: rounded(Math.min(...seconds(({ markedAtMs, spokeAtMs }) => markedAtMs - spokeAtMs))),
    meanAgeSeconds: rounded(
      seconds(({ failedAtMs, spokeAtMs }) => failedAtMs - spokeAtMs).reduce((a, b) => a + b, 0) / failures.length,
    ),
    storedAfterFailure: failures.filter(({ failedAtMs, spokeAtMs }) => spokeAtMs > failedAtMs).length,
    unmarked,
    falseMarks: cluster.marks() - failures.length,
    nodeHours: rounded(((time.nowMs() - fromMs) / 3_600_000) * machines * sites.length),
    errors: cluster.errors.length,
  });
  reportParts(report, machines, failures, policy);
}

/**
 * Where the seconds go. A mark follows the later of two times: `witnessGraceSeconds` after the accusation, and the
 * floor after the last stored heartbeat.
 */
function reportParts(report: Report, machines: number, failures: readonly Failure[], policy: Policy): void {
  const floorMs = 1_000 * steadySeconds(policy.beatIntervalSeconds);
  const graceMs = 1_000 * policy.witnessGraceSeconds;
  const accused = failures.flatMap(({ accusedAtMs, ...each }) =>
    accusedAtMs === undefined ? [] : [{ ...each, accusedAtMs, floorEndsAtMs: each.spokeAtMs + floorMs }],
  );
  if (accused.length === 0) return;
  type Accused = (typeof accused)[number];
  const dueAtMs = ({ accusedAtMs, floorEndsAtMs }: Accused): number => Math.max(accusedAtMs + graceMs, floorEndsAtMs);
  const parts: Readonly<Record<string, (each: Accused) => number>> = {
    'last heartbeat begun → failure': ({ beganAtMs, failedAtMs }) => failedAtMs - beganAtMs,
    'last heartbeat begun → stored': ({ beganAtMs, spokeAtMs }) => spokeAtMs - beganAtMs,
    'failure → accusation stored': ({ failedAtMs, accusedAtMs }) => accusedAtMs - failedAtMs,
    'accusation and its grace period → floor': ({ accusedAtMs, floorEndsAtMs }) =>
      Math.max(0, floorEndsAtMs - accusedAtMs - graceMs),
    'due → mark': (each) => each.markedAtMs - dueAtMs(each),
  };
  for (const [part, milliseconds] of Object.entries(parts)) {
    const values = accused.map((each) => milliseconds(each) / 1_000);
    const at = (share: number): number => rounded(percentile(values, share));
    report({ machines, part, p10Seconds: at(0.1), p50Seconds: at(0.5), p90Seconds: at(0.9), p99Seconds: at(0.99) });
  }
}

function startCluster(time: StormTime, fraction: () => number, policy: Policy) {
  const tables = memoryItemStore({ changesOf: ['objects', 'health'] });
  const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
  const errors: string[] = [];
  const tickQueue: TickQueue = {
    async send(_slot, { delaySeconds }) {
      void pause(delaySeconds * 1_000 + DELIVERED_MAX_MS * fraction()).then(tick);
    },
    postpone: async () => {},
  };
  const items = conflictingStore(tables, { transactionMs: TRANSACTION_MS, pause, random: fraction });
  const system: SystemOptions = {
    ...{ fraction, pause, policy, tickQueue },
    items: {
      ...items,
      // Each mark is a transaction.
      async transact(writes) {
        const outcome = await items.transact(writes);
        lookForMarks();
        return outcome;
      },
    },
    clock: { nowMs: () => time.nowMs() },
    onError: (message, fields) => errors.push(`${message} ${String(fields?.['error'] ?? '')}`),
    probe: { beat: async () => ({ kind: 'accepted' }) },
  };
  const api = apiOf(system);
  const heartbeat = heartbeatOf(system);
  const controllers = controllersOf(system);
  const streams = createStreams(tables, controllers);
  const waiting = new Map<string, (mark: Mark) => void>();
  let marks = 0;
  /** Changes of the table of nodes up to here were read. */
  let seen = 0;

  async function tick(): Promise<void> {
    const outcome = await controllers.onTickMessage('tick', TICK_BUDGET_MS);
    if (outcome.kind === 'failed') errors.push(String(outcome.fault));
  }

  async function accusedAtMs(name: string): Promise<number | undefined> {
    const reports = (await readReports(tables)).flatMap(({ role, sinceMs }) =>
      sinceMs.has(name) ? [{ role, sinceMs: sinceMs.get(name)! }] : [],
    );
    const firstOf = (isWanted: (role: string) => boolean): number =>
      Math.min(...reports.flatMap(({ role, sinceMs }) => (isWanted(role) ? [sinceMs] : [])));
    const atMs = Math.max(
      firstOf((role) => role === 'hub'),
      firstOf((role) => role !== 'hub'),
    );
    return Number.isFinite(atMs) ? atMs : undefined;
  }

  function lookForMarks(): void {
    for (const { sequence, newImage = {}, oldImage = {} } of tables.changes('health', seen)) {
      seen = sequence;
      const before = nodeHealthOf(oldImage);
      const after = nodeHealthOf(newImage);
      if (before?.ready !== 'True' || after?.ready !== 'Unknown') continue;
      marks += 1;
      const markedAtMs = time.nowMs();
      const beganAtMs = (LEASE.renewedAtMicros.of(newImage) ?? 0) / 1_000;
      const found = waiting.get(after.nodeName);
      void accusedAtMs(after.nodeName).then((atMs) =>
        found?.({ markedAtMs, beganAtMs, spokeAtMs: lastSpokeAtMs(after), accusedAtMs: atMs }),
      );
    }
  }

  async function deliver(): Promise<void> {
    for (;;) {
      await streams.drain().catch((fault: unknown) => errors.push(String(fault)));
      lookForMarks();
      tables.forgetChanges('objects', streams.delivered.objects);
      tables.forgetChanges('health', streams.delivered.health);
      await pause(1_000);
    }
  }
  void deliver();
  void tick();
  return {
    errors,
    marks: () => marks,
    serve: (request: Parameters<typeof heartbeat>[0]) => (isRenewal(request) ? heartbeat(request) : api(request)),
    async marked(name: string, withinMs: number): Promise<Mark | undefined> {
      const mark = new Promise<Mark>((resolve) => waiting.set(name, resolve));
      const found = await Promise.race([mark, pause(withinMs).then(() => undefined)]);
      waiting.delete(name);
      return found;
    },
  };
}
