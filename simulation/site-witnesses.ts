/**
 * Sites with machines that witness the silence of each other: each zone is one. Machines answer the relay of their
 * site each two seconds on its network. That network is apart from the simulated one to the endpoint. The relay, on the
 * first machine of the zone, reports those that do not answer, and asks one other machine. Both report in their own
 * heartbeats, at once when something changes.
 *
 * The troubles of sites come one after the other: the network of a site restarts, the answers of one machine are lost
 * on their way, a relay crashes, is slow, or lies, alone or with a second machine.
 */
import { isRenewal } from '../server/routes.ts';
import { SILENT_MACHINES_ANNOTATION, silentMachinesText, type WitnessRole } from '../shared/fleet/silent-machines.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { SendRequest } from './heartbeat-doors.ts';
import type { TrueMachine } from './laws/law.ts';
import { oneOf } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

export const SITE_TROUBLES = {
  siteRestart: 'the switch of a site restarts: no machine answers another one there',
  oneWayCut: 'answers of one machine do not reach the others of its site',
  relayCrash: 'the relay terminates and withdraws nothing',
  slowRelay: 'reports of the relay are five seconds late',
  lyingRelay: 'the relay reports a machine that answers, again and again',
  lyingPair: 'the relay and a second machine do',
} as const;
export type SiteTrouble = keyof typeof SITE_TROUBLES;

const STEP_MS = 250;
const ANSWER_EVERY_MS = 2_000;
/** An answer that is late by half a second, and a probe of one second. */
const NOTICED_MS = 3_500;
const PROBE_MS = 1_000;
export const REPEATED_MS = 60_000;
/** Between two heartbeats that are sent at once. */
const AT_ONCE_MS = 2_000;
const SLOW_MS = 5_000;
/** A liar withdraws its report and makes it again this often. */
const LIE_MS = 3_000;
const TROUBLE = { everyMs: 120_000, leastMs: 10_000, mostMs: 60_000 };
const DOUBT_SHARE = 1 / 3;

export interface SiteMachine {
  readonly name: string;
  readonly machine: Pick<TrueMachine, 'isOn' | 'sinceMs'>;
  /** When it last answered the relay; undefined: not since the relay or the machine started. */
  answeredAtMs: number | undefined;
  startedAtMs: number;
  /** Who was asked to probe it, and when. */
  asked: { readonly witness: string; readonly atMs: number } | undefined;
}

interface Report {
  text: string | undefined;
  changedAtMs: number;
  sentAtMs: number;
  wake: (() => void) | undefined;
}

export interface SiteWitnesses {
  /** Requests of a machine. Its heartbeats carry what it reports. */
  reporting(name: string, send: SendRequest): SendRequest;
  /** Waits for the time of the next heartbeat of a machine, or until it reports something else. */
  untilNextBeat(name: string, waitMs: number): Promise<void>;
  /** When the machine last answered on the network of its site. */
  answeredAtMs(name: string): number | undefined;
}

export interface SiteWitnessesOptions {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly troubles: readonly SiteTrouble[];
  /** All machines, in the order in which they were added. */
  readonly machines: () => ReadonlyMap<string, TrueMachine>;
  readonly log: (subject: string, text: string) => void;
}

export function siteWitnesses(options: SiteWitnessesOptions): SiteWitnesses {
  const { time, machines } = options;
  const known = new Map<string, SiteMachine>();
  const reports = new Map<string, Report>();
  const sites = new Map<string, Site>();

  const reportOf = (name: string): Report => {
    const report = reports.get(name) ?? {
      text: undefined,
      changedAtMs: 0,
      sentAtMs: Number.NEGATIVE_INFINITY,
      wake: undefined,
    };
    reports.set(name, report);
    return report;
  };

  function setReport(name: string, role: WitnessRole, names: readonly string[]): void {
    const report = reportOf(name);
    const text = silentMachinesText(role, names);
    if (report.text === text || (report.text === undefined && names.length === 0)) return;
    report.text = text;
    report.changedAtMs = time.nowMs();
    report.wake?.();
  }

  function step(): void {
    time.after(STEP_MS, step);
    const byZone = Map.groupBy(
      [...machines()].filter(([, { instance }]) => instance !== 'ended'),
      ([, { zone }]) => zone,
    );
    for (const [zone, members] of byZone) {
      const site = sites.get(zone) ?? new Site(options, setReport);
      sites.set(zone, site);
      site.step(
        members.map(([name, machine]) => {
          const one = known.get(name) ?? {
            name,
            machine,
            answeredAtMs: undefined,
            startedAtMs: machine.sinceMs,
            asked: undefined,
          };
          known.set(name, one);
          return one;
        }),
      );
    }
  }
  time.after(STEP_MS, step);

  return {
    answeredAtMs: (name) => known.get(name)?.answeredAtMs,
    reporting: (name, send) => (request) => {
      const report = reportOf(name);
      const { text, changedAtMs } = report;
      if (!isRenewal(request) || text === undefined || time.nowMs() - changedAtMs > REPEATED_MS) return send(request);
      report.sentAtMs = time.nowMs();
      const lease = request.body as KubeObject;
      const annotations = { ...lease.metadata.annotations, [SILENT_MACHINES_ANNOTATION]: text };
      return send({ ...request, body: { ...lease, metadata: { ...lease.metadata, annotations } } });
    },
    async untilNextBeat(name, waitMs) {
      const report = reportOf(name);
      const changed = new Promise<void>((resolve) => {
        report.wake = resolve;
      });
      const isRecent = report.text !== undefined && time.nowMs() - report.changedAtMs <= REPEATED_MS;
      const isPending = isRecent && report.changedAtMs > report.sentAtMs;
      await Promise.race([time.sleep(waitMs), isPending ? undefined : changed]);
      report.wake = undefined;
      const earliestMs = report.sentAtMs + AT_ONCE_MS;
      if (time.nowMs() < earliestMs) await time.sleep(earliestMs - time.nowMs());
    },
  };
}

/** What a machine reports from now on. It may be what it reported before. */
export type SetReport = (name: string, role: WitnessRole, names: readonly string[]) => void;

type SiteOptions = Pick<SiteWitnessesOptions, 'time' | 'fraction' | 'troubles' | 'log'>;

/** The machines of one site. The first one is its relay. */
export class Site {
  readonly #options: SiteOptions;
  readonly #setReport: SetReport;
  #trouble: { readonly kind: SiteTrouble; readonly victim: string; readonly untilMs: number } | undefined;
  #nextTroubleMs: number;
  #turn = 0;
  /** Machines that have reported as witnesses. */
  readonly #witnesses = new Set<string>();

  constructor(options: SiteOptions, setReport: SetReport) {
    this.#options = options;
    this.#setReport = setReport;
    this.#nextTroubleMs = options.time.nowMs() + TROUBLE.everyMs * options.fraction();
  }

  step(members: readonly SiteMachine[]): void {
    const { time } = this.#options;
    const nowMs = time.nowMs();
    const [relay, ...others] = members;
    if (relay === undefined) return;
    this.#changeTrouble(others, nowMs);
    for (const each of others) this.#answer(each, relay, nowMs);
    const isDown = this.#trouble?.kind === 'relayCrash' || !relay.machine.isOn;
    if (isDown) {
      // A relay that starts again knows no machine, and machines withdraw what they were asked for.
      for (const each of others) each.answeredAtMs = undefined;
      for (const each of others) each.asked = undefined;
      this.#reportAsWitnesses(new Map());
      return;
    }
    const silent = others.filter(({ answeredAtMs }) => answeredAtMs !== undefined && nowMs - answeredAtMs > NOTICED_MS);
    const reported = silent.length > members.length * DOUBT_SHARE ? [] : silent;
    for (const each of others) if (!reported.includes(each)) each.asked = undefined;
    const byWitness = new Map<string, string[]>();
    const accuse = (witness: string, name: string): void => {
      byWitness.set(witness, [...(byWitness.get(witness) ?? []), name]);
    };
    for (const each of reported) {
      each.asked ??= this.#ask(each, others, nowMs);
      if (each.asked !== undefined && nowMs - each.asked.atMs >= PROBE_MS) accuse(each.asked.witness, each.name);
    }
    const names = reported.map(({ name }) => name);
    const { kind, victim = '' } = this.#trouble ?? {};
    const lies = (kind === 'lyingRelay' || kind === 'lyingPair') && nowMs % LIE_MS >= AT_ONCE_MS / 4;
    if (lies) names.push(victim);
    const liar = others.find(({ name, machine }) => name !== victim && machine.isOn);
    if (lies && kind === 'lyingPair' && liar !== undefined) accuse(liar.name, victim);
    this.#reportAsWitnesses(byWitness);
    if (kind === 'slowRelay') time.after(SLOW_MS, () => this.#setReport(relay.name, 'hub', names));
    else this.#setReport(relay.name, 'hub', names);
  }

  #reportAsWitnesses(byWitness: ReadonlyMap<string, readonly string[]>): void {
    for (const name of byWitness.keys()) this.#witnesses.add(name);
    for (const name of this.#witnesses) this.#setReport(name, 'machine', byWitness.get(name) ?? []);
  }

  #ask(silent: SiteMachine, others: readonly SiteMachine[], nowMs: number): SiteMachine['asked'] {
    const able = others.filter((each) => each !== silent && each.machine.isOn && each.answeredAtMs !== undefined);
    this.#turn += 1;
    const witness = able[this.#turn % Math.max(1, able.length)];
    return witness === undefined ? undefined : { witness: witness.name, atMs: nowMs };
  }

  #answer(each: SiteMachine, relay: SiteMachine, nowMs: number): void {
    const { machine } = each;
    if (machine.isOn && machine.sinceMs !== each.startedAtMs) {
      each.startedAtMs = machine.sinceMs;
      each.answeredAtMs = undefined;
    }
    const { kind, victim } = this.#trouble ?? {};
    const isLost = kind === 'siteRestart' || (kind === 'oneWayCut' && victim === each.name);
    if (!machine.isOn || !relay.machine.isOn || isLost) return;
    if (each.answeredAtMs === undefined || nowMs - each.answeredAtMs >= ANSWER_EVERY_MS) each.answeredAtMs = nowMs;
  }

  #changeTrouble(others: readonly SiteMachine[], nowMs: number): void {
    const { fraction, troubles, log } = this.#options;
    if (this.#trouble !== undefined && nowMs >= this.#trouble.untilMs) this.#trouble = undefined;
    if (nowMs < this.#nextTroubleMs) return;
    this.#nextTroubleMs = nowMs + TROUBLE.everyMs * (0.5 + fraction());
    const kind = oneOf(troubles, fraction);
    const victim = oneOf(others, fraction)?.name;
    if (kind === undefined || victim === undefined) return;
    const untilMs = nowMs + TROUBLE.leastMs + fraction() * (TROUBLE.mostMs - TROUBLE.leastMs);
    this.#trouble = { kind, victim, untilMs };
    log(victim, `trouble of its site: ${SITE_TROUBLES[kind]}`);
  }
}
