/**
 * A small model of a site under faults, for false marks with witnesses: heartbeats of its machines, and what they
 * report about each other. Event by event on virtual time; a calm site costs no more than its last heartbeats.
 *
 * When the relay reports, and which machine it asks, are the real rules (agent/rules/site-watch.ts), and so are the
 * waits for a relay (agent/rules/relay-use.ts). The loops around them are modelled. What each line of the model relies
 * on, and the test of the real code:
 *
 *   two reports of a silent machine, 1.5 s and a probe after its last beat   agent/app/site.test.ts: `reports a machine
 *                                                                            without power by the relay and one other`
 *   no report while a relayed heartbeat of it is on its way                  `only when none of its heartbeats`
 *   withdrawn at the next beat or answer                                     `withdraws both reports at once`
 *   the asked machine has an answer: it reports nothing                      `that answers probes without beats`
 *   nothing while more than a third is late; anew after all were             `a relay with many silent machines`
 *   reports end after a minute                                               `ends its reports and probes`
 *   without the relay 20 heartbeats, one in 4 s, sent directly               `a machine that loses its relay`
 *   a change is sent at once, one in 2 s; later heartbeats repeat it         agent/app/silence-report.test.ts
 *   a relay that hangs delays no heartbeat beyond 14 s                       agent/app/relay-route.test.ts
 *   five attempts, then one after 0.2 s to 7 s                               agent/app/lease-loop.test.ts
 *
 * A relay that lies withdraws and repeats its report after each stored heartbeat of its victims. It has an honest
 * machine agree: it asks it to probe an address where nothing answers. It answers its victims, so they suspect nothing.
 * It has their heartbeats stored and answers as late as they wait, holds them back, or acknowledges and drops them.
 */
import { ENSURE_LEASE_WAITS } from '../agent/rules/backoff.ts';
import { jitteredMs } from '../agent/rules/lease.ts';
import { BATCH_WAIT_MS, collectMs, relayWaitMs } from '../agent/rules/relay-use.ts';
import { canWitness, isLate, nextWitness, PROBE_TIMEOUT_MS, siteView } from '../agent/rules/site-watch.ts';
import { backoffMs } from '../shared/backoff.ts';
import { oneOf } from './seeded-random.ts';
import { type SentBeat, SiteMachine, type Watched } from './site-machine.ts';

export const SITE_FAULTS = {
  switchReboot: 'the switch of some or all machines restarts, with or without their way to the cluster',
  oneWayCut: 'what one machine sends, or is sent, is lost on the network of the site',
  relayCrash: 'the relay, or its machine, terminates and withdraws nothing',
  slowRelay: 'the relay reports, withdraws and relays late, and sees machines as silent that are not',
  lyingRelay: 'the relay reports machines that answer, and has another one agree',
  lyingPair: 'the relay and a second machine lie at once',
} as const;
export type SiteFault = keyof typeof SITE_FAULTS;

/** The agent's own times. Milliseconds. */
const ANSWER_EVERY_MS = 4_000;
const ANSWERS_FOR_MS = 80_000;
const EXTRA_BEAT_EVERY_MS = 2_000;
const RELAY_CLOSED_MS = 60_000;
const CHECK_EVERY_MS = 300_000;
/** A machine that its relay does not answer withdraws what it was asked for. */
const UNANSWERED_MS = 5_000;
/** Mean time from the end of a fault to the next one, and from one loss of power to the next. Milliseconds. */
const MEAN_CALM_MS = 1_200_000;
const DEATH_EVERY_MS = 7_200_000;
const REVIEW_SOON_MS = 250;
const REVIEW_LATER_MS = 2_000;
const SOON_FOR_MS = 6_000;
const LIED_ABOUT_MAX = 3;
const USUAL_ANSWER_MS = 300;

export interface SitePath {
  /** Whether a request of a machine is accepted by the cluster. */
  readonly arrives: (atMs: number, tries: number) => boolean;
  /** Whether refused machines are asked to wait, as by 429. */
  readonly isThrottled: (atMs: number) => boolean;
  readonly receiptMs: (atMs: number) => number;
  readonly storeReport: (reporter: string, text: string, receivedAtMs: number) => Promise<void>;
}

export interface FaultySiteOptions {
  /** Index of its first machine, which is the relay; the others follow. */
  readonly first: number;
  readonly size: number;
  readonly faults: readonly SiteFault[];
  readonly intervalMs: number;
  readonly random: () => number;
  readonly startMs: number;
  readonly path: SitePath;
}

interface SiteEvent {
  readonly atMs: number;
  readonly run: (nowMs: number) => Promise<void> | void;
}

/** What a relay asked another machine. */
interface Asked {
  readonly name: string | undefined;
  readonly atMs: number;
  isConfirmed: boolean;
}

interface Lie {
  readonly victims: ReadonlySet<SiteMachine>;
  readonly accomplice: SiteMachine;
  /** The accomplice lies itself. */
  readonly isPair: boolean;
  readonly drops: boolean;
}

export class FaultySite {
  readonly machines: readonly SiteMachine[];
  readonly faults: Record<SiteFault, number> = {
    switchReboot: 0,
    oneWayCut: 0,
    relayCrash: 0,
    slowRelay: 0,
    lyingRelay: 0,
    lyingPair: 0,
  };
  deaths = 0;
  reports = 0;
  readonly #options: FaultySiteOptions;
  readonly #random: () => number;
  readonly #relay: SiteMachine;
  readonly #members: readonly SiteMachine[];
  readonly #byName: ReadonlyMap<string, SiteMachine>;
  /** By time. */
  readonly #events: SiteEvent[] = [];
  readonly #watched = new Map<string, Watched>();
  readonly #asked = new Map<string, Asked>();
  #lastAsked = '';
  #isRelayRunning = true;
  #slowMs = 0;
  #lie: Lie | undefined;
  #reviewsSoonUntilMs = 0;
  #isReviewDue = false;
  #calmUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: FaultySiteOptions) {
    this.#options = options;
    this.#random = options.random;
    const { first, size, startMs, intervalMs, faults } = options;
    this.machines = Array.from({ length: size }, (_, position) => {
      const index = first + position;
      const nextAtMs = startMs + intervalMs * this.#random();
      return new SiteMachine(index, `m-${index}`, position === 0 ? 'hub' : 'machine', startMs, nextAtMs);
    });
    this.#relay = this.machines[0]!;
    this.#members = this.machines.slice(1);
    this.#byName = new Map(this.machines.map((machine) => [machine.name, machine]));
    for (const { name } of this.#members) this.#watch(name, startMs);
    if (faults.length > 0) this.#at(startMs + this.#exponential(MEAN_CALM_MS), (nowMs) => this.#beginFault(nowMs));
    this.#at(startMs + this.#exponential(DEATH_EVERY_MS), (nowMs) => this.#beginDeath(nowMs));
  }

  /** Up to then its machines send heartbeats, and nothing else happens. */
  get calmUntilMs(): number {
    return this.#calmUntilMs;
  }

  /**
   * All that happens up to this time. Undefined: it has happened.
   *
   * @param isPathClear every heartbeat arrives. Then only the last ones of a calm site are computed.
   */
  advance(untilMs: number, isPathClear = false): Promise<void> | undefined {
    if (this.#calmUntilMs <= untilMs) return this.#inOrder(untilMs);
    for (const machine of this.machines) {
      if (isPathClear) this.#skip(machine, untilMs);
      for (let atMs = timeOf(machine); atMs <= untilMs; atMs = timeOf(machine)) {
        if (machine.sent === undefined) this.#begin(machine, atMs);
        else void this.#stored(machine, machine.sent);
      }
    }
    return undefined;
  }

  async #inOrder(untilMs: number): Promise<void> {
    for (;;) {
      let atMs = this.#events[0]!.atMs;
      let next: SiteMachine | undefined;
      for (const machine of this.machines) {
        const time = timeOf(machine);
        if (time < atMs) [atMs, next] = [time, machine];
      }
      if (atMs > untilMs) break;
      if (next === undefined) await this.#events.shift()!.run(atMs);
      else if (next.sent === undefined) this.#begin(next, atMs);
      else await this.#stored(next, next.sent);
    }
    const isCalm = this.#lie === undefined && !this.machines.some(({ isReporting }) => isReporting);
    this.#calmUntilMs = isCalm ? this.#events[0]!.atMs : Number.NEGATIVE_INFINITY;
  }

  /** Heartbeats of a calm machine, but for the last one and the next. */
  #skip(machine: SiteMachine, untilMs: number): void {
    const { intervalMs, path } = this.#options;
    const cycleMs = jitteredMs(intervalMs, this.#random()) + USUAL_ANSWER_MS;
    const cycles = Math.floor((untilMs - machine.nextAtMs) / cycleMs) - 1;
    if (cycles < 1 || machine.sent !== undefined || machine.failures > 0) return;
    machine.nextAtMs += cycles * cycleMs;
    machine.acceptedFromMs = machine.nextAtMs - cycleMs;
    machine.storedAtMs = machine.acceptedFromMs + USUAL_ANSWER_MS;
    machine.receivedAtMs = path.receiptMs(machine.storedAtMs);
  }

  #at(atMs: number, run: SiteEvent['run']): void {
    const place = this.#events.findIndex((each) => each.atMs > atMs);
    this.#events.splice(place === -1 ? this.#events.length : place, 0, { atMs, run });
  }

  #between(leastMs: number, mostMs: number): number {
    return leastMs + (mostMs - leastMs) * this.#random();
  }

  #exponential(meanMs: number): number {
    return -Math.log(1 - this.#random()) * meanMs;
  }

  // Heartbeats.

  #begin(machine: SiteMachine, nowMs: number): void {
    const isUrgent = machine.isNews(nowMs);
    const usesRelay = machine !== this.#relay && nowMs >= machine.relayClosedUntilMs && nowMs < machine.checkAtMs;
    const waitMs = isUrgent ? undefined : relayWaitMs(nowMs - machine.acceptedFromMs, this.#options.intervalMs);
    if (!usesRelay || waitMs === undefined) {
      this.#beginDirect(machine, nowMs, nowMs);
      return;
    }
    const relayed = this.#relayed(machine, nowMs, waitMs);
    if (typeof relayed === 'number') {
      machine.relayClosedUntilMs = relayed + RELAY_CLOSED_MS;
      this.#beginDirect(machine, nowMs, relayed);
    } else {
      machine.acceptedFromMs = nowMs;
      machine.sent = relayed;
    }
  }

  /** A heartbeat through the relay, or when it is sent directly instead. */
  #relayed(machine: SiteMachine, nowMs: number, waitMs: number): SentBeat | number {
    const { path, intervalMs } = this.#options;
    const sent = (delayMs: number, answerMs: number): SentBeat | number => {
      const storedAtMs = nowMs + delayMs;
      // Otherwise the relay answers 503.
      if (!this.#relay.reachesCluster || !path.arrives(storedAtMs, 1)) return storedAtMs;
      const text = machine.text(nowMs);
      return { storedAtMs, answeredAtMs: nowMs + answerMs, text, isDropped: false, isRelayed: true };
    };
    // A process that was killed refuses at once. A machine without power, or behind a cut, does not.
    if (this.#relay.isOn && !this.#isRelayRunning) return nowMs + 20;
    if (machine.isDeaf || !this.#isHeard(machine)) return nowMs + Math.min(waitMs, this.#between(500, 3_500));
    if (this.#lie?.victims.has(machine) === true) {
      if (this.#lie.drops) {
        machine.wasAway = true;
        const answeredAtMs = nowMs + 200;
        return { storedAtMs: answeredAtMs, answeredAtMs, text: undefined, isDropped: true, isRelayed: true };
      }
      const choice = this.#random();
      if (choice < 0.4) return nowMs + waitMs;
      if (choice < 0.8) return sent(this.#between(50, 150), waitMs - 10);
    } else if (this.#slowMs > 0) {
      const delayMs = this.#between(300, BATCH_WAIT_MS + 1_500);
      return delayMs + 100 > waitMs ? nowMs + waitMs : sent(delayMs, delayMs + 100);
    }
    const delayMs = this.#between(100, collectMs(waitMs, intervalMs) + 100);
    return sent(delayMs, delayMs + 50);
  }

  #beginDirect(machine: SiteMachine, begunAtMs: number, sentAtMs: number): void {
    const { path } = this.#options;
    const tries = machine.failures === 0 && !path.isThrottled(sentAtMs) ? 5 : 1;
    if (!machine.reachesCluster || !path.arrives(sentAtMs, tries)) {
      const isRefused = machine.reachesCluster && !path.isThrottled(sentAtMs);
      const waitMs = isRefused ? backoffMs(ENSURE_LEASE_WAITS, machine.failures) : this.#between(1_000, 10_000);
      machine.failures += 1;
      machine.nextAtMs = sentAtMs + waitMs;
      return;
    }
    const storedAtMs = sentAtMs + 20 + 980 * this.#random() ** 3;
    machine.acceptedFromMs = begunAtMs;
    machine.checkAtMs = storedAtMs + CHECK_EVERY_MS;
    // The version that the relay made up is refused.
    if (this.#lie?.drops === true && this.#lie.victims.has(machine)) machine.relayClosedUntilMs = sentAtMs + 3_600_000;
    machine.sent = {
      storedAtMs,
      answeredAtMs: storedAtMs + 20,
      text: machine.text(sentAtMs),
      isDropped: false,
      isRelayed: false,
    };
  }

  #stored(machine: SiteMachine, { storedAtMs, answeredAtMs, text, isDropped }: SentBeat): Promise<void> | undefined {
    machine.sent = undefined;
    machine.failures = 0;
    if (!isDropped) this.#receive(machine, storedAtMs);
    if (!machine.isOn) machine.nextAtMs = Number.POSITIVE_INFINITY;
    else {
      machine.accepted(text);
      machine.nextAtMs = answeredAtMs + jitteredMs(this.#options.intervalMs, this.#random());
      if (machine.isNews(answeredAtMs)) this.#urge(machine, answeredAtMs);
    }
    if (!isDropped && this.#lie?.victims.has(machine) === true) this.#repeatLie(machine, storedAtMs);
    if (text === undefined || isDropped) return undefined;
    this.reports += 1;
    return this.#options.path.storeReport(machine.name, text, machine.receivedAtMs);
  }

  #receive(machine: SiteMachine, atMs: number): void {
    machine.earlier = { storedAtMs: machine.storedAtMs, receivedAtMs: machine.receivedAtMs };
    machine.storedAtMs = atMs;
    machine.receivedAtMs = this.#options.path.receiptMs(atMs);
    machine.wasAway = !machine.isOn || !machine.reachesCluster;
  }

  /** Its next heartbeat is sent at once, but not within 2 s of another one for the same reason. */
  #urge(machine: SiteMachine, nowMs: number): void {
    if (!machine.isOn || machine.sent !== undefined || machine.failures > 0) return;
    const atMs = Math.max(nowMs, machine.urgedAtMs + EXTRA_BEAT_EVERY_MS);
    if (atMs >= machine.nextAtMs) return;
    machine.urgedAtMs = atMs;
    machine.nextAtMs = atMs;
  }

  /** It has noticed that the relay does not answer. */
  #beginAnswers(machine: SiteMachine, nowMs: number): void {
    if (machine === this.#relay || !machine.isOn || nowMs < machine.answersUntilMs) return;
    machine.answersUntilMs = nowMs + ANSWERS_FOR_MS;
    const answer = (atMs: number): void => {
      if (!machine.isOn || atMs >= machine.answersUntilMs) return;
      machine.isAnswerDue = true;
      this.#urge(machine, atMs);
      this.#at(atMs + ANSWER_EVERY_MS, answer);
    };
    this.#at(nowMs + this.#between(0, 2_000), answer);
  }

  // The relay and its reports.

  #report(machine: SiteMachine, names: readonly string[], nowMs: number): void {
    if (!machine.isOn) return;
    if (machine.report(names, nowMs)) this.#urge(machine, nowMs);
  }

  #isHeard(machine: SiteMachine): boolean {
    return machine.isOn && machine.cut === 'none' && this.#relay.isOn && this.#relay.cut !== 'all';
  }

  #watch(name: string, nowMs: number): void {
    this.#watched.set(name, {
      name,
      isConnected: true,
      answeredAtMs: nowMs,
      brokenAtMs: Number.NEGATIVE_INFINITY,
      excusedUntilMs: Number.NEGATIVE_INFINITY,
      isProbeable: true,
      silentSinceMs: undefined,
    });
  }

  /** Nothing passes between the relay and these machines from now on. */
  #lose(machines: readonly SiteMachine[], nowMs: number): void {
    for (const machine of machines) {
      const watched = this.#watched.get(machine.name);
      if (watched !== undefined) watched.answeredAtMs = nowMs - this.#between(0, 1_000);
      this.#at(nowMs + this.#between(500, 1_500), (atMs) => {
        if (!this.#isHeard(machine) || machine.isDeaf) this.#beginAnswers(machine, atMs);
      });
      this.#at(nowMs + UNANSWERED_MS, (atMs) => {
        if (!this.#isHeard(machine)) this.#report(machine, [], atMs);
      });
    }
    this.#reviewSoon(nowMs);
  }

  #reviewSoon(nowMs: number): void {
    this.#reviewsSoonUntilMs = nowMs + SOON_FOR_MS;
    if (this.#isReviewDue) return;
    this.#isReviewDue = true;
    this.#at(nowMs + this.#between(0, REVIEW_SOON_MS), (atMs) => this.#review(atMs));
  }

  #review(nowMs: number): void {
    this.#isReviewDue = false;
    if (!this.#relay.isOn || !this.#isRelayRunning) return;
    let unheard = 0;
    for (const machine of this.#members) {
      const watched = this.#watched.get(machine.name);
      if (this.#isHeard(machine)) {
        if (watched === undefined) this.#watch(machine.name, nowMs);
        else Object.assign(watched, { answeredAtMs: nowMs, silentSinceMs: undefined });
      } else if (watched !== undefined) {
        unheard += 1;
        // Its probe began when the beat was overdue.
        if (isLate(watched, nowMs - 100)) watched.silentSinceMs ??= nowMs;
      }
    }
    const view = siteView(this.#watched.values(), nowMs);
    const { silent: found, suspected } = view.kind === 'clear' ? view : { silent: [], suspected: [] };
    const known = this.#relay.reported();
    const silent = found.filter((name) => known.includes(name) || this.#byName.get(name)!.sent?.isRelayed !== true);
    this.#askOthers(suspected, silent, nowMs);
    if (view.kind === 'cutOff') this.#watched.clear();
    if (this.#lie === undefined) {
      if (this.#slowMs === 0) this.#report(this.#relay, silent, nowMs);
      else this.#at(nowMs + this.#slowMs, (atMs) => this.#report(this.#relay, silent, atMs));
    }
    if (unheard === 0 && this.#asked.size === 0 && nowMs > this.#reviewsSoonUntilMs) return;
    this.#isReviewDue = true;
    const everyMs = nowMs < this.#reviewsSoonUntilMs ? REVIEW_SOON_MS : REVIEW_LATER_MS;
    this.#at(nowMs + everyMs, (atMs) => this.#review(atMs));
  }

  #askOthers(suspected: readonly string[], silent: readonly string[], nowMs: number): void {
    for (const name of this.#asked.keys()) if (!suspected.includes(name)) this.#asked.delete(name);
    for (const name of suspected) {
      const before = this.#asked.get(name);
      const watched = this.#watched.get(before?.name ?? '');
      const isAble = watched !== undefined && canWitness(watched, nowMs);
      const asked = isAble ? before! : this.#ask(nowMs);
      this.#asked.set(name, asked);
      if (silent.includes(name)) asked.isConfirmed = true;
    }
    const byWitness = new Map<string, string[]>();
    for (const [name, { name: witness, atMs, isConfirmed }] of this.#asked) {
      if (witness === undefined || !isConfirmed || nowMs - atMs < PROBE_TIMEOUT_MS) continue;
      if (this.#isReached(this.#byName.get(name)!, this.#byName.get(witness)!)) continue;
      byWitness.set(witness, [...(byWitness.get(witness) ?? []), name]);
    }
    for (const machine of this.#members) {
      const isLiar = this.#lie?.accomplice === machine;
      if (!isLiar && this.#isHeard(machine)) this.#report(machine, byWitness.get(machine.name) ?? [], nowMs);
    }
  }

  #ask(nowMs: number): Asked {
    const name = nextWitness(this.#watched.values(), this.#lastAsked, nowMs);
    this.#lastAsked = name ?? this.#lastAsked;
    return { name, atMs: nowMs, isConfirmed: false };
  }

  #isReached(machine: SiteMachine, witness: SiteMachine): boolean {
    return machine.isOn && witness.isOn && machine.cut !== 'all' && witness.cut !== 'all';
  }

  // Faults.

  #beginDeath(nowMs: number): void {
    this.#at(nowMs + this.#exponential(DEATH_EVERY_MS), (atMs) => this.#beginDeath(atMs));
    const victim = oneOf(this.#members, this.#random)!;
    if (!victim.isOn) return;
    this.deaths += 1;
    this.#turnOff(victim, nowMs);
    this.#at(nowMs + this.#between(20_000, 300_000), (atMs) => this.#turnOn(victim, atMs));
  }

  #turnOff(machine: SiteMachine, nowMs: number): void {
    const { sent } = machine;
    machine.restart();
    machine.isOn = false;
    machine.wasAway = true;
    machine.nextAtMs = Number.POSITIVE_INFINITY;
    // What has left it is stored.
    if (sent !== undefined && sent.storedAtMs > nowMs + 1_600) machine.sent = undefined;
    if (machine === this.#relay) this.#stopRelay(nowMs);
    else this.#lose([machine], nowMs);
  }

  #turnOn(machine: SiteMachine, nowMs: number): void {
    machine.isOn = true;
    machine.nextAtMs = nowMs;
    machine.checkAtMs = 0;
    if (machine === this.#relay) this.#startRelay(nowMs);
    else this.#reviewSoon(nowMs);
  }

  #stopRelay(nowMs: number): void {
    this.#watched.clear();
    this.#asked.clear();
    this.#relay.restart();
    for (const machine of this.#members) {
      this.#at(nowMs + this.#between(10, 100), (atMs) => {
        this.#report(machine, [], atMs);
        this.#beginAnswers(machine, atMs);
      });
    }
  }

  #startRelay(nowMs: number): void {
    // Machines connect again one after the other; until then they are not watched.
    this.#at(nowMs + this.#between(1_000, 20_000), (atMs) => {
      for (const machine of this.#members) machine.answersUntilMs = 0;
      this.#reviewSoon(atMs);
    });
  }

  #beginFault(nowMs: number): void {
    const kind = oneOf(this.#options.faults, this.#random)!;
    this.faults[kind] += 1;
    const isLong = this.#random() < 0.2;
    const untilMs = nowMs + (isLong ? this.#between(60_000, 960_000) : this.#between(5_000, 95_000));
    this.#at(untilMs + this.#exponential(MEAN_CALM_MS), (atMs) => this.#beginFault(atMs));
    const begin: Readonly<Record<SiteFault, () => void>> = {
      switchReboot: () => this.#rebootSwitch(nowMs, untilMs),
      oneWayCut: () => this.#cutOneWay(oneOf(this.#members, this.#random)!, nowMs, untilMs),
      relayCrash: () => this.#crashRelay(nowMs, untilMs),
      slowRelay: () => this.#slowDown(nowMs, untilMs),
      lyingRelay: () => this.#beginLie(false, nowMs, untilMs),
      lyingPair: () => this.#beginLie(true, nowMs, untilMs),
    };
    begin[kind]();
  }

  #rebootSwitch(nowMs: number, untilMs: number): void {
    const isWhole = this.#random() < 0.3;
    const share = this.#random();
    const behind = this.machines.filter((machine) => machine.isOn && (isWhole || this.#random() < share));
    const cutsCluster = this.#random() < 0.5;
    for (const machine of behind) {
      machine.cut = 'all';
      if (cutsCluster) Object.assign(machine, { reachesCluster: false, wasAway: true });
      // Ports return one after the other.
      this.#at(untilMs + this.#between(0, 30_000), (atMs) => this.#reconnect(machine, atMs));
    }
    this.#lose(behind.includes(this.#relay) ? this.#members : behind, nowMs);
  }

  #reconnect(machine: SiteMachine, nowMs: number): void {
    machine.cut = 'none';
    machine.isDeaf = false;
    machine.reachesCluster = true;
    if (machine !== this.#relay) machine.answersUntilMs = Math.min(machine.answersUntilMs, nowMs + 1_000);
    this.#reviewSoon(nowMs);
  }

  #cutOneWay(machine: SiteMachine, nowMs: number, untilMs: number): void {
    const direction = this.#random();
    if (direction < 0.25) machine.isDeaf = true;
    else machine.cut = direction < 0.5 ? 'relay' : 'all';
    this.#lose([machine], nowMs);
    this.#at(untilMs, (atMs) => this.#reconnect(machine, atMs));
    // Some cuts come and go.
    if (this.#random() < 0.3 && untilMs - nowMs > 20_000) {
      const pauseMs = this.#between(5_000, untilMs - nowMs - 10_000);
      this.#at(nowMs + pauseMs, (atMs) => this.#reconnect(machine, atMs));
      this.#at(nowMs + pauseMs + this.#between(500, 5_000), (atMs) => {
        machine.cut = 'all';
        this.#lose([machine], atMs);
      });
    }
  }

  #crashRelay(nowMs: number, untilMs: number): void {
    const isOfMachine = this.#random() < 0.5;
    const crash = (atMs: number): void => {
      if (!this.#relay.isOn) return;
      if (isOfMachine) this.#turnOff(this.#relay, atMs);
      else {
        this.#isRelayRunning = false;
        this.#stopRelay(atMs);
      }
    };
    // Half of them while it reports a machine that returns just then: nothing withdraws that.
    if (this.#random() < 0.5) {
      const machine = oneOf(this.#members, this.#random)!;
      machine.cut = 'all';
      this.#lose([machine], nowMs);
      const crashAtMs = nowMs + this.#between(2_000, 5_000);
      this.#at(crashAtMs, crash);
      this.#at(crashAtMs + this.#between(0, 2_000), (atMs) => this.#reconnect(machine, atMs));
    } else crash(nowMs);
    this.#at(Math.max(untilMs, nowMs + 8_000), (atMs) => {
      this.#isRelayRunning = true;
      if (this.#relay.isOn) this.#startRelay(atMs);
      else this.#turnOn(this.#relay, atMs);
    });
  }

  #slowDown(nowMs: number, untilMs: number): void {
    this.#slowMs = this.#between(1_000, 10_000);
    const flicker = (atMs: number): void => {
      if (atMs >= untilMs) return;
      const machine = oneOf(this.#members, this.#random)!;
      if (machine.isOn && machine.cut === 'none') {
        // Now and then the other machine loses the answer, too.
        machine.cut = this.#random() < 0.1 ? 'all' : 'relay';
        this.#lose([machine], atMs);
        this.#at(atMs + this.#between(2_000, 5_000), (backMs) => this.#reconnect(machine, backMs));
      }
      this.#at(atMs + this.#between(5_000, 25_000), flicker);
    };
    flicker(nowMs);
    this.#at(untilMs, (atMs) => {
      this.#slowMs = 0;
      this.#reviewSoon(atMs + 10_000);
    });
  }

  #beginLie(isPair: boolean, nowMs: number, untilMs: number): void {
    const count = 1 + Math.floor(this.#random() * Math.min(LIED_ABOUT_MAX, Math.floor(this.machines.length / 3)));
    const shuffled = [...this.#members].sort(() => this.#random() - 0.5);
    const victims = new Set(shuffled.slice(0, count));
    this.#lie = { victims, accomplice: shuffled.at(-1)!, isPair, drops: this.#random() < 0.15 };
    for (const victim of victims) this.#repeatLie(victim, nowMs);
    this.#at(untilMs, (atMs) => {
      const { accomplice } = this.#lie!;
      this.#lie = undefined;
      this.#report(this.#relay, [], atMs);
      this.#report(accomplice, [], atMs);
      this.#reviewSoon(atMs);
    });
  }

  /** Withdraws the report of this victim, and makes it again: it is then newer than its last heartbeat. */
  #repeatLie(victim: SiteMachine, nowMs: number): void {
    const lie = this.#lie!;
    const { accomplice, isPair } = lie;
    const without = [...lie.victims].flatMap((each) => (each === victim ? [] : [each.name]));
    const withIt = [...without, victim.name];
    const during = (run: (atMs: number) => Promise<void> | void) => (atMs: number) =>
      this.#lie === lie ? run(atMs) : undefined;
    const liars = isPair ? [this.#relay, accomplice] : [this.#relay];
    this.#at(
      nowMs + this.#between(20, 200),
      during((atMs) => this.#sendAtOnce(liars, without, atMs)),
    );
    this.#at(
      nowMs + this.#between(210, 400),
      during((atMs) => this.#sendAtOnce(liars, withIt, atMs)),
    );
    if (isPair) return;
    // An honest machine sends one heartbeat in 2 s. Its victims are those that it is asked about.
    this.#at(
      nowMs + 30,
      during((atMs) => this.#report(accomplice, without, atMs)),
    );
    this.#at(
      nowMs + 2_600,
      during((atMs) => this.#report(accomplice, withIt, atMs)),
    );
  }

  /** A liar sends heartbeats whenever it likes. */
  async #sendAtOnce(liars: readonly SiteMachine[], names: readonly string[], nowMs: number): Promise<void> {
    const { path } = this.#options;
    for (const liar of liars) {
      if (!liar.isOn || !liar.reachesCluster || !path.arrives(nowMs, 1)) continue;
      liar.report(names, nowMs);
      const text = liar.text(nowMs);
      this.#receive(liar, nowMs);
      if (text === undefined) continue;
      liar.accepted(text);
      this.reports += 1;
      await path.storeReport(liar.name, text, liar.receivedAtMs);
    }
  }
}

const timeOf = ({ sent, nextAtMs }: SiteMachine): number => sent?.storedAtMs ?? nextAtMs;
