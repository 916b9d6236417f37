/**
 * Sites of ten machines in a long run, and what their machines report about each other. The sites and their troubles
 * are those of the simulation (site-witnesses.ts), looked at once in a second. Half of the silences are of machines
 * without power. The others only lose their way to the cluster, and answer in their site.
 *
 * A report arrives like a heartbeat: after the time in which a relay collects, and the faults of the network and of the
 * endpoint befall it. It is repeated with each heartbeat for a minute. The real function stores it.
 */

import { parseSilentMachines, silentMachinesText, type WitnessRole } from '../../shared/fleet/silent-machines.ts';
import { storeReport } from '../../shared/fleet/witness-report-store.ts';
import type { ItemUpdater } from '../../shared/store/item-store.ts';
import type { FaultPlan } from '../faults/catalogue.ts';
import { REPEATED_MS, Site, type SiteMachine, type SiteTrouble } from '../site-witnesses.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { LATE_MAX_MS, LATE_SHARE, LOST_SHARE } from './heartbeats.ts';

export const SITE_MACHINES = 10;
const LOOKS_APART_MS = 1_000;
const OFF_SHARE = 0.5;
/** From a change to its arrival: what a relay waits, and the network. Milliseconds. */
const ARRIVES_MIN_MS = 50;
const ARRIVES_MAX_MS = 1_300;
/** A mark may rest on what was withdrawn while it was written. Milliseconds. */
const REMEMBERED_MS = 10_000;

export const siteOf = (node: number): string => `site-${Math.floor(node / SITE_MACHINES)}`;

/** One reporter's report of one machine, from its first arrival until it was withdrawn. True times. */
interface Accusation {
  readonly reporter: string;
  readonly role: WitnessRole;
  readonly sinceMs: number;
  /** Infinity: it was not withdrawn. */
  untilMs: number;
}

interface Reporter {
  text: string;
  changedAtMs: number;
  isRepeating: boolean;
}

export interface SiteReportsOptions {
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly random: (purpose: string) => () => number;
  readonly nodes: number;
  readonly troubles: readonly SiteTrouble[];
  /** From one heartbeat to the next. */
  readonly intervalMs: number;
  readonly items: ItemUpdater;
  readonly nameOf: (node: number) => string;
  readonly nodeOf: (name: string) => number;
  /** The receipt time that the heartbeat function stores for a heartbeat of this true time. */
  readonly receiptMs: (node: number, atMs: number) => number;
  /** It sends no heartbeat now. */
  readonly isSilent: (node: number) => boolean;
}

export class SiteReports {
  readonly #options: SiteReportsOptions;
  readonly #machines: { isOn: boolean; sinceMs: number }[];
  readonly #reporters = new Map<string, Reporter>();
  /** Receipt time of the last report of each reporter. */
  readonly #receivedMs = new Map<string, number>();
  /** By accused machine. */
  readonly #accusations = new Map<number, Accusation[]>();
  readonly #powers: () => number;
  readonly #ways: () => number;

  constructor(options: SiteReportsOptions) {
    this.#options = options;
    const { nodes, time, random, troubles, nameOf } = options;
    this.#powers = random('power');
    this.#ways = random('reports');
    this.#machines = Array.from({ length: nodes }, () => ({ isOn: true, sinceMs: time.nowMs() }));
    const members = this.#machines.map(
      (machine, node): SiteMachine => ({
        ...{ name: nameOf(node), machine, answeredAtMs: undefined, startedAtMs: time.nowMs(), asked: undefined },
      }),
    );
    const fraction = random('sites');
    const sites = Array.from({ length: Math.ceil(nodes / SITE_MACHINES) }, (_, site) => ({
      site: new Site({ time, fraction, troubles, log: () => undefined }, (...report) => this.#setReport(...report)),
      members: members.slice(site * SITE_MACHINES, (site + 1) * SITE_MACHINES),
    }));
    const look = (): void => {
      time.after(LOOKS_APART_MS, look);
      for (const { site, members: ofSite } of sites) site.step(ofSite);
    };
    time.after(LOOKS_APART_MS, look);
  }

  onSilence(node: number): void {
    if (this.#powers() < OFF_SHARE) Object.assign(this.#machines[node]!, { isOn: false, sinceMs: this.#nowMs() });
  }

  onReturn(node: number): void {
    const machine = this.#machines[node]!;
    if (!machine.isOn) Object.assign(machine, { isOn: true, sinceMs: this.#nowMs() });
  }

  /**
   * Since when a relay and a second machine agree that this one is silent, by reports that began after a moment;
   * undefined: they do not. True times.
   */
  accusedSinceMs(node: number, afterMs: number): number | undefined {
    const recentMs = this.#nowMs() - REMEMBERED_MS;
    const all = (this.#accusations.get(node) ?? []).filter(
      ({ sinceMs, untilMs }) => sinceMs > afterMs && untilMs >= recentMs,
    );
    const hub = all.find(({ role }) => role === 'hub');
    const other = all.find(({ reporter }) => reporter !== hub?.reporter);
    return hub === undefined || other === undefined ? undefined : Math.max(hub.sinceMs, other.sinceMs);
  }

  #nowMs(): number {
    return this.#options.time.nowMs();
  }

  #setReport(name: string, role: WitnessRole, names: readonly string[]): void {
    const text = silentMachinesText(role, names);
    const reporter = this.#reporters.get(name);
    if (reporter === undefined && names.length === 0) return;
    if (reporter?.text === text) return;
    const next = reporter ?? { text, changedAtMs: 0, isRepeating: false };
    Object.assign(next, { text, changedAtMs: this.#nowMs() });
    this.#reporters.set(name, next);
    this.#send(name, text);
    if (!next.isRepeating) this.#repeat(name, next);
  }

  #repeat(name: string, reporter: Reporter): void {
    reporter.isRepeating = true;
    this.#options.time.after(this.#options.intervalMs, () => {
      reporter.isRepeating = false;
      if (this.#nowMs() - reporter.changedAtMs > REPEATED_MS) return;
      this.#send(name, reporter.text);
      this.#repeat(name, reporter);
    });
  }

  #send(name: string, text: string): void {
    const { plan, time, nodeOf, isSilent } = this.#options;
    const ways = this.#ways;
    if (isSilent(nodeOf(name)) || ways() < LOST_SHARE * plan.severity('lostBeats')) return;
    const lateMs = ways() < LATE_SHARE * plan.severity('lateBeats') ? LATE_MAX_MS * ways() : 0;
    time.after(ARRIVES_MIN_MS + ways() * (ARRIVES_MAX_MS - ARRIVES_MIN_MS) + lateMs, () => this.#arrive(name, text));
  }

  #arrive(name: string, text: string): void {
    const { plan, items, nodeOf, receiptMs } = this.#options;
    const report = parseSilentMachines(text);
    if (report === undefined || plan.severity('apiOutage') > 0) return;
    const nowMs = this.#nowMs();
    const received = { ...report, reporter: name, nowMs: receiptMs(nodeOf(name), nowMs) };
    void storeReport(items, received, () => true);
    // Clocks of processes differ: a report may have an earlier receipt time than the one before it, and is no newer.
    if (received.nowMs <= (this.#receivedMs.get(name) ?? Number.NEGATIVE_INFINITY)) return;
    this.#receivedMs.set(name, received.nowMs);
    const accused = new Set(report.names.map(nodeOf));
    for (const [node, known] of this.#accusations) {
      for (const each of known)
        if (each.reporter === name && !accused.has(node)) each.untilMs = Math.min(each.untilMs, nowMs);
      const recent = known.filter(({ untilMs }) => untilMs >= nowMs - REMEMBERED_MS);
      if (recent.length === 0) this.#accusations.delete(node);
      else if (recent.length < known.length) this.#accusations.set(node, recent);
    }
    for (const node of accused) {
      const known = this.#accusations.get(node) ?? [];
      this.#accusations.set(node, known);
      const stands = known.some(({ reporter, untilMs }) => reporter === name && untilMs > nowMs);
      if (!stands) known.push({ reporter: name, role: report.role, sinceMs: nowMs, untilMs: Number.POSITIVE_INFINITY });
    }
  }
}
