/**
 * False marks with witnesses and without, over the same heartbeats, reports and faults: two monitors by the real rules,
 * one with `witnessGraceSeconds` 0, see the same fleet of sites (faulty-site.ts), under faults of ours as in
 * false-marks.ts. Reports are stored and read by the real functions (shared/fleet/witness-report-store.ts).
 *
 * A look between two ticks is modelled after functions/node-monitor/look-again.ts (look-again.test.ts): it sends a
 * probe, reads reports and heartbeats, and decides by the rule of one mark. A heartbeat that is stored before the mark
 * is written prevents it (mark-nodes.test.ts), so a stale read marks no machine.
 *
 * A mark is one of:
 *   off    the machine has no power
 *   away   it runs, but since its last stored heartbeat its site cut it off from the cluster, or its relay dropped one
 *   step   it runs, and all clocks of ours stepped together by over half a second since its last stored heartbeat
 *   false  any other of a machine that runs
 */

import { type Testimonies, type Testimony, testimoniesOf } from '../shared/fleet/accusation.rule.ts';
import { type GateRecord, gateVerdictOf, pathFailedAtMs } from '../shared/fleet/gate.ts';
import { decideMark } from '../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../shared/fleet/nodes/health.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { parseSilentMachines, type SilenceReport } from '../shared/fleet/silent-machines.ts';
import { forgetReport, readReports, storeReport } from '../shared/fleet/witness-report-store.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { PERIOD_RESERVE_MS } from '../shared/ticks/tick.ts';
import { FaultySite, type SiteFault, type SitePath } from './faulty-site.ts';
import { type FaultKind, OwnFaults } from './own-faults.ts';
import { type Passed, RuleMonitor } from './rule-monitor.ts';
import { seededFraction } from './seeded-random.ts';
import type { SiteMachine } from './site-machine.ts';

/** Bugs of the rules, as changes of what they read. A check that cannot fail shows nothing. */
export const SITE_PLANTS = {
  oneReport: 'one report is enough',
  standingReport: 'a heartbeat does not void a report that is repeated',
  ownFaults: 'a failed heartbeat or a missing tick of our own does not count',
  floor: 'the shortest silence before a mark is that of an interval of 5 s',
} as const;
export type SitePlant = keyof typeof SITE_PLANTS;

export interface SiteFalseMarksOptions {
  readonly nodes: number;
  readonly hours: number;
  readonly seed: number;
  readonly policy: Policy;
  readonly siteFaults: readonly SiteFault[];
  readonly ownFaults: readonly FaultKind[];
  readonly meanCalmSeconds: number;
  /** By how much the clocks of two processes differ. Milliseconds. */
  readonly skewMs: number;
  readonly plants?: readonly SitePlant[];
}

export interface Marks {
  off: number;
  away: number;
  step: number;
  false: number;
}
export type MarkKind = keyof Marks;

export interface SiteFalseMarksResult {
  readonly nodeHours: number;
  readonly without: Marks;
  readonly witnessed: Marks;
  /** By the faults of ours that were going on, or had just ended. */
  readonly falseMarksDuring: Readonly<Record<string, number>>;
  /** Silences with a grace period that reports shortened, by the true state of the machine at that time. */
  readonly shortened: Marks;
  /** Marks that rest on reports. */
  readonly shortenedMarks: Marks;
  readonly siteFaults: number;
  readonly reports: number;
  readonly deaths: number;
}

const START_MS = Date.UTC(2026, 0, 1);
const SITE_SIZES = [3, 5, 10, 20];
/** Looks of one tick, and how long after the deadline one is (functions/node-monitor/look-again.ts). Milliseconds. */
const LOOKS_MAX = 8;
const LOOK_AFTER_MS = 50;
/** A tick starts up to so much later than its slot, as a share of the period. */
const TICK_JITTER = 0.02;
/** The oldest stale read, and more than the difference of clocks. Milliseconds. */
const STALE_MAX_MS = 2_000;
/** A step of all clocks that is no drift. Milliseconds. */
const STEP_MS = 500;
/** A calm site is brought up to date each few ticks: more often than a grace period ends. */
const LAZY_TICKS = 4;
/** Since the last fault of our path: longer than a site is not brought up to date. Milliseconds. */
const CLEAR_FOR_MS = 60_000;

type MutableHealth = { -readonly [Field in keyof NodeHealth]: NodeHealth[Field] };

interface Digest {
  readonly health: MutableHealth;
  /** True time of its mark. */
  markedAtMs: number | undefined;
}

/** One node-monitor over the fleet. */
interface Watch {
  readonly monitor: RuleMonitor;
  readonly digests: readonly Digest[];
  readonly nodes: readonly NodeHealth[];
  readonly marks: Marks;
}

export const simulateSiteFalseMarks = (options: SiteFalseMarksOptions): Promise<SiteFalseMarksResult> =>
  new SiteFalseMarksRun(options).run();

class SiteFalseMarksRun {
  readonly #options: SiteFalseMarksOptions;
  readonly #random: () => number;
  readonly #periodMs: number;
  readonly #faults: OwnFaults;
  readonly #sites: readonly FaultySite[];
  readonly #machines: readonly SiteMachine[];
  readonly #siteOf: readonly FaultySite[];
  readonly #items = memoryItemStore();
  readonly #without: Watch;
  readonly #witnessed: Watch;
  readonly #falseMarksDuring: Record<string, number> = {};
  readonly #shortened: Marks = noMarks();
  readonly #shortenedMarks: Marks = noMarks();
  /** By machine: the heartbeat after which a shortened grace period was counted. */
  readonly #countedAtMs: number[] = [];
  /** Machines that are Unknown with witnesses or without. */
  readonly #unknown = new Set<number>();
  #lookFailedAtMs: number | undefined;
  #pathFaultAtMs = Number.NEGATIVE_INFINITY;
  #turn = 0;
  #steppedAtMs = Number.NEGATIVE_INFINITY;
  #lastPassAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: SiteFalseMarksOptions) {
    this.#options = options;
    const { policy, seed, ownFaults: kinds, meanCalmSeconds, plants = [] } = options;
    this.#random = seededFraction(seed);
    this.#periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
    const { periodMs, random } = { periodMs: this.#periodMs, random: this.#random };
    this.#faults = new OwnFaults({ kinds, random, periodMs, meanCalmSeconds, startMs: START_MS });
    this.#sites = this.#newSites();
    this.#machines = this.#sites.flatMap(({ machines }) => machines);
    this.#siteOf = this.#sites.flatMap((site) => site.machines.map(() => site));
    const on = plants.includes('floor') ? { ...policy, beatIntervalSeconds: 5 } : policy;
    this.#without = this.#newWatch({ ...policy, witnessGraceSeconds: 0 });
    this.#witnessed = this.#newWatch(on);
  }

  async run(): Promise<SiteFalseMarksResult> {
    const { hours } = this.#options;
    const endMs = START_MS + hours * 3_600_000;
    for (let tickMs = START_MS; tickMs <= endMs; tickMs += this.#periodMs) {
      const aheadMs = this.#faults.clockAheadMs;
      if (this.#faults.isDue(tickMs)) await this.#advance(tickMs, { isLazy: false });
      this.#faults.begin(tickMs);
      if (!this.#faults.isPathClear(tickMs)) this.#pathFaultAtMs = tickMs;
      // After a late tick, heartbeats of the time after the step already have their receipt times.
      const hasStepped = Math.abs(this.#faults.clockAheadMs - aheadMs) > STEP_MS;
      if (hasStepped) this.#steppedAtMs = Math.max(tickMs, this.#lastPassAtMs);
      const lateMs = this.#faults.size('lateTicks', tickMs) ?? this.#periodMs * TICK_JITTER * this.#random();
      const nowMs = tickMs + lateMs;
      await this.#advance(nowMs, { isLazy: true });
      const missed = this.#faults.size('missedTicks', tickMs);
      if (missed !== undefined && this.#random() < missed) continue;
      // A later slot was claimed before this one came: it is lost.
      if (nowMs <= this.#lastPassAtMs) continue;
      this.#lastPassAtMs = nowMs;
      const untilMs = nowMs + this.#periodMs - (lateMs % this.#periodMs) - PERIOD_RESERVE_MS;
      const twice = this.#faults.size('duplicateTicks', tickMs);
      // The slot is claimed already; a second run that was not stopped by that finds nothing to do.
      const again = twice !== undefined && this.#random() < twice ? nowMs + 200 * this.#random() : undefined;
      await this.#tick(nowMs, untilMs);
      if (again !== undefined) await this.#tick(again, untilMs);
    }
    const sum = (of: (site: FaultySite) => number): number => this.#sites.reduce((all, site) => all + of(site), 0);
    return {
      nodeHours: this.#machines.length * hours,
      without: this.#without.marks,
      witnessed: this.#witnessed.marks,
      falseMarksDuring: this.#falseMarksDuring,
      shortened: this.#shortened,
      shortenedMarks: this.#shortenedMarks,
      siteFaults: sum(({ faults }) => Object.values(faults).reduce((all, count) => all + count, 0)),
      reports: sum(({ reports }) => reports),
      deaths: sum(({ deaths }) => deaths),
    };
  }

  #newSites(): readonly FaultySite[] {
    const { nodes, policy, siteFaults: faults, seed } = this.#options;
    const path = this.#path();
    const sites: FaultySite[] = [];
    for (let first = 0, turn = 0; first + SITE_SIZES[0]! <= nodes; turn += 1) {
      const size = Math.min(SITE_SIZES[turn % SITE_SIZES.length]!, nodes - first);
      const random = seededFraction(seed * 10_007 + turn);
      const intervalMs = policy.beatIntervalSeconds * 1_000;
      sites.push(new FaultySite({ first, size, faults, intervalMs, random, startMs: START_MS, path }));
      first += size;
    }
    return sites;
  }

  #path(): SitePath {
    return {
      arrives: (atMs, tries) => this.#faults.arrives(atMs, tries),
      // Every second outage refuses at once, the others with 429.
      isThrottled: () => this.#faults.counts.ingestDown % 2 === 1,
      receiptMs: (atMs) =>
        Math.round(atMs + this.#faults.clockAheadMs + this.#options.skewMs * (2 * this.#random() - 1)),
      storeReport: (reporter, text, nowMs) =>
        storeReport(this.#items, { ...parseSilentMachines(text)!, reporter, nowMs }, () => true),
    };
  }

  #newWatch(policy: Policy): Watch {
    const digests = this.#sites.flatMap(({ machines }, site) =>
      machines.map(({ index, name }) => ({ health: newHealth(index, name, zoneOf(site)), markedAtMs: undefined })),
    );
    // Their rates play no part, so no zone has a record.
    const monitor = new RuleMonitor(policy, []);
    return { monitor, digests, nodes: digests.map(({ health }) => health), marks: noMarks() };
  }

  /** Calm sites are only brought up to date now and then while our path is clear, or when they are evaluated. */
  async #advance(nowMs: number, { isLazy }: { readonly isLazy: boolean }): Promise<void> {
    const isClear = nowMs - this.#pathFaultAtMs > CLEAR_FOR_MS;
    this.#turn += 1;
    for (const [position, site] of this.#sites.entries()) {
      const isSkipped = isLazy && isClear && (position + this.#turn) % LAZY_TICKS !== 0 && site.calmUntilMs > nowMs;
      const going = isSkipped ? undefined : site.advance(nowMs, isClear);
      if (going !== undefined) await going;
    }
  }

  async #tick(nowMs: number, untilMs: number): Promise<void> {
    const serverMs = nowMs + this.#faults.clockAheadMs;
    const half = this.#faults.size('halfTicks', nowMs);
    const died = half !== undefined && this.#random() < half;
    const shared = { serverMs, probe: () => this.#faults.arrives(nowMs, 1), dies: () => died };
    const reports = await readReports(this.#items);
    const indices = await this.#toEvaluate(reports, nowMs, serverMs);
    const seenUntilMs = nowMs - (this.#faults.size('staleReads', nowMs) ?? 0);
    const nodesOf = (watch: Watch): readonly NodeHealth[] =>
      indices.map((index) => {
        this.#see(watch, this.#machines[index]!, seenUntilMs);
        return watch.nodes[index]!;
      });
    const without = this.#without.monitor.pass({ ...shared, nodes: nodesOf(this.#without) });
    this.#apply(this.#without, without.marks, nowMs);
    const passed = this.#witnessed.monitor.pass({
      ...shared,
      nodes: nodesOf(this.#witnessed),
      testimonies: (gate) => this.#testimonies(reports, gate, serverMs),
    });
    this.#apply(this.#witnessed, passed.marks, nowMs);
    for (const { nodeName } of passed.accused) this.#countShortened(this.#machines[indexOf(nodeName)]!);
    for (const report of reports) {
      const old = forgetReport(report, serverMs);
      if (old !== undefined) await this.#items.write(old);
    }
    await this.#lookAgain(passed.accused, untilMs);
  }

  /**
   * The machines of sites where something may be decided. Of the others one site stays, for the state of the fleet: no
   * machine there is reported or marked, and each has sent a heartbeat within its grace period. To evaluate them would
   * need most of the time, and decides nothing.
   */
  async #toEvaluate(reports: readonly SilenceReport[], nowMs: number, serverMs: number): Promise<readonly number[]> {
    const reporting = new Set(reports.map(({ reporter }) => this.#siteOf[indexOf(reporter)]!));
    const graceMs = 1_000 * this.#options.policy.nodeMonitorGracePeriodSeconds;
    const heardAfterMs = serverMs - graceMs + STALE_MAX_MS;
    const indices: number[] = [];
    let hasCalm = false;
    for (const site of this.#sites) {
      const isCalm = !reporting.has(site) && this.#isHeard(site, heardAfterMs);
      if (isCalm && hasCalm) continue;
      hasCalm ||= isCalm;
      await site.advance(nowMs);
      for (const { index } of site.machines) indices.push(index);
    }
    return indices;
  }

  #isHeard({ machines }: FaultySite, afterMs: number): boolean {
    for (const { index, receivedAtMs } of machines) {
      if (receivedAtMs <= afterMs || this.#unknown.has(index)) return false;
    }
    return true;
  }

  /** What the store shows of a machine, as of a time. After a mark, its next heartbeat is followed by a status. */
  #see({ digests }: Watch, { index, storedAtMs, receivedAtMs, earlier }: SiteMachine, atMs: number): void {
    const digest = digests[index]!;
    const { health } = digest;
    health.renewedAtMs = storedAtMs <= atMs ? receivedAtMs : earlier.receivedAtMs;
    if (health.ready === 'True' || storedAtMs <= digest.markedAtMs! || storedAtMs > atMs) return;
    health.ready = 'True';
    health.statusAtMs = receivedAtMs;
    delete health.markedAtMs;
    if (this.#without.nodes[index]!.ready === 'True' && this.#witnessed.nodes[index]!.ready === 'True') {
      this.#unknown.delete(index);
    }
  }

  async #lookAgain(accused: Passed['accused'], untilMs: number): Promise<void> {
    const { clockAheadMs } = this.#faults;
    let waiting = accused.filter(({ deadlineMs }) => deadlineMs < untilMs + clockAheadMs);
    for (let looks = 0; looks < LOOKS_MAX && waiting.length > 0; looks += 1) {
      const firstMs = Math.min(...waiting.map(({ deadlineMs }) => deadlineMs));
      const dueMs = Math.min(untilMs + clockAheadMs, firstMs + LOOK_AFTER_MS);
      const due = waiting.filter(({ deadlineMs }) => deadlineMs < dueMs).map(({ nodeName }) => indexOf(nodeName));
      waiting = waiting.filter(({ deadlineMs }) => deadlineMs >= dueMs);
      await this.#look(due, Math.ceil(dueMs) - clockAheadMs);
    }
  }

  async #look(due: readonly number[], nowMs: number): Promise<void> {
    const { monitor, digests } = this.#witnessed;
    const { policy, gate, disruption } = monitor;
    const serverMs = nowMs + this.#faults.clockAheadMs;
    for (const site of new Set(due.map((index) => this.#siteOf[index]!))) {
      await site.advance(nowMs);
      for (const machine of site.machines) this.#see(this.#witnessed, machine, nowMs);
    }
    if (!this.#faults.arrives(nowMs, 1)) {
      this.#lookFailedAtMs = serverMs;
      return;
    }
    if (gateVerdictOf(gate, undefined, { nowMs: serverMs, policy }).kind === 'holding') return;
    const testimonies = this.#testimonies(await readReports(this.#items), gate, serverMs);
    const marks = due.flatMap((index) => {
      const { health } = digests[index]!;
      return decideMark(health, { nowMs: serverMs, policy, gate, disruption, testimonies }) ?? [];
    });
    this.#apply(this.#witnessed, marks, nowMs);
  }

  /** Of the zones with reports: the others have none. */
  #testimonies(reports: readonly SilenceReport[], gate: GateRecord, nowMs: number): Testimonies {
    const { policy } = this.#witnessed.monitor;
    const sites = new Set(reports.map(({ reporter }) => this.#siteOf[indexOf(reporter)]!));
    const nodes = [...sites].flatMap(({ machines }) => machines.map(({ index }) => this.#witnessed.nodes[index]!));
    const failedAtMs = pathFailedAtMs(gate, this.#lookFailedAtMs);
    const testimonies = testimoniesOf(nodes, reports, { nowMs, policy, pathFailedAtMs: failedAtMs });
    const { plants = [] } = this.#options;
    if (plants.length === 0) return testimonies;
    return new Map([...testimonies].map(([name, testimony]) => [name, planted(testimony, plants)]));
  }

  #apply(watch: Watch, marks: Passed['marks'], nowMs: number): void {
    for (const { nodeName, lastSpokeAtMs, accusation } of marks) {
      const machine = this.#machines[indexOf(nodeName)]!;
      const digest = watch.digests[machine.index]!;
      if (machine.receivedAtMs > lastSpokeAtMs) continue;
      digest.health.ready = 'Unknown';
      this.#unknown.add(machine.index);
      digest.health.markedAtMs = nowMs + this.#faults.clockAheadMs;
      digest.markedAtMs = nowMs;
      const kind = this.#kindOf(machine);
      watch.marks[kind] += 1;
      if (watch !== this.#witnessed) continue;
      if (accusation?.shortens === true) {
        this.#countShortened(machine);
        this.#shortenedMarks[kind] += 1;
      }
      if (kind !== 'false') continue;
      const during = this.#faults.names();
      this.#falseMarksDuring[during] = (this.#falseMarksDuring[during] ?? 0) + 1;
    }
  }

  #kindOf({ isOn, wasAway, storedAtMs }: SiteMachine): MarkKind {
    if (!isOn) return 'off';
    if (wasAway) return 'away';
    return this.#steppedAtMs > storedAtMs ? 'step' : 'false';
  }

  #countShortened(machine: SiteMachine): void {
    if (this.#countedAtMs[machine.index] === machine.storedAtMs) return;
    this.#countedAtMs[machine.index] = machine.storedAtMs;
    this.#shortened[this.#kindOf(machine)] += 1;
  }
}

const noMarks = (): Marks => ({ off: 0, away: 0, step: 0, false: 0 });
const zoneOf = (site: number): string => `site-${site}`;
const indexOf = (name: string): number => Number(name.slice(2));

function newHealth(index: number, nodeName: string, zone: string): MutableHealth {
  return {
    nodeName,
    uid: `uid-${index}`,
    zone,
    ready: 'True',
    excluded: false,
    suspect: false,
    noExecute: { notReady: false, unreachable: false },
    createdAtMs: START_MS,
    renewedAtMs: START_MS,
    statusAtMs: START_MS,
  };
}

function planted(testimony: Testimony, plants: readonly SitePlant[]): Testimony {
  const { pathFailedAtMs: failedAtMs, ...rest } = testimony;
  let { witnesses } = testimony;
  if (plants.includes('oneReport')) {
    witnesses = witnesses.flatMap((each) => [
      each,
      { ...each, nodeName: `${each.nodeName}-again`, role: each.role === 'hub' ? 'machine' : 'hub' } as const,
    ]);
  }
  if (plants.includes('standingReport')) {
    witnesses = witnesses.map((each) => ({ ...each, sinceMs: each.receivedAtMs }));
  }
  const path = plants.includes('ownFaults') || failedAtMs === undefined ? {} : { pathFailedAtMs: failedAtMs };
  return { ...rest, ...path, witnesses };
}
