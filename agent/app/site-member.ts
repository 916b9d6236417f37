/**
 * A machine's half of the witnesses (docs/witnesses.md): it keeps one connection to the relay of its site, beats on it,
 * and probes other machines while the relay asks for it.
 *
 * A failure here delays no heartbeat: the relay then only does not watch this machine.
 *
 * A machine that loses the relay may be reported, although its way to the cluster works. Its usual heartbeat may be
 * later than the shortened grace period. So it sends a heartbeat every 4 s for as long as a report of it can begin.
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { JoinSite, ProbeWitness, SiteLine, SiteLineEvents, WitnessAddress } from '../ports/site.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { hubMessageOf, type MachineMessage, messageText } from '../rules/site-message.ts';
import { LINE_IDLE_MS, PROBE_EVERY_MS, SILENCE_PROBED_MS, SITE_BEAT_MS } from '../rules/site-watch.ts';
import { describeError } from './describe-error.ts';
import type { SilenceReport } from './silence-report.ts';
import { timedProbe } from './timed-probe.ts';

/** The first wait is shorter than the time in which the relay expects this machine again. */
const JOIN_WAITS: Backoff = { firstMs: 200, limitMs: 30_000, jitter: [0.5, 1.5] };
/** A relay that does not watch its site may be replaced by one that does. Milliseconds. */
const UNSUPPORTED_WAIT_MS = 60_000;
/** A beat without an answer after this time: the relay may not see this machine. Milliseconds. */
const SEEN_WITHIN_MS = 500;
/** A connection without an answer to a beat is dead after this time. Milliseconds. */
const UNANSWERED_MS = 5_000;
/** Interval of heartbeats without the relay: half of the shortened grace period. Milliseconds. */
const ANSWER_EVERY_MS = 4_000;
/** The machines of a relay that fails do not send the first one together. Milliseconds. */
const ANSWERS_SPREAD_MS = 2_000;
/** The relay closes a connection without beats, and then forgets the machine. Milliseconds. */
const UNSEEN_MS = LINE_IDLE_MS + SILENCE_PROBED_MS;
/** Machines that are probed at a time. */
const PROBED_MAX = 32;
/** Silence that a graceful shutdown of the machine announces, and one of the agent: the next one starts. Seconds. */
const SHUTDOWN_SECONDS = 600;
const RESTART_SECONDS = 60;

export interface SiteMemberDependencies {
  readonly nodeName: string;
  readonly join: JoinSite;
  readonly probe: ProbeWitness;
  readonly report: Pick<SilenceReport, 'update' | 'answer'>;
  /** Where this machine answers probes; 0: it does not. */
  readonly witnessPort: () => number;
  readonly isShuttingDown: () => boolean;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: Pick<AgentMeter, 'count' | 'gauge'>;
}

export class SiteMember {
  readonly #dependencies: SiteMemberDependencies;
  /** By name: whether it is silent here, whether it is for the relay too, and how its probes end. */
  readonly #probed = new Map<string, { isSilent: boolean; isConfirmed: boolean; readonly end: AbortController }>();
  /** Aborted when the machine leaves or rejoins its site. */
  #turn = new AbortController();
  /** Aborted when the relay answers again. Undefined: it answers, or never did. */
  #unseen: AbortController | undefined;
  /** How long the machine is away by its own announcement. Seconds; undefined: it is not. */
  #awaySeconds: number | undefined;

  constructor(dependencies: SiteMemberDependencies) {
    this.#dependencies = dependencies;
  }

  /** The machine will be silent for this time, such as while it is suspended. */
  leave(forSeconds: number): void {
    this.#awaySeconds = forSeconds;
    this.#turn.abort();
  }

  /** The machine returns. */
  rejoin(): void {
    this.#awaySeconds = undefined;
    this.#turn.abort();
  }

  /** Until stopped. Never rejects. */
  async run(stop: AbortSignal): Promise<void> {
    const { time, fraction, log, isShuttingDown } = this.#dependencies;
    let failures = 0;
    let isUnsupported = false;
    while (!stop.aborted) {
      this.#turn = new AbortController();
      const turn = AbortSignal.any([stop, this.#turn.signal]);
      const awaySeconds = isShuttingDown() ? SITE_BEAT_MS / 1_000 : this.#awaySeconds;
      if (awaySeconds !== undefined) {
        await time.sleep(awaySeconds * 1_000, turn);
        if (!turn.aborted) this.#awaySeconds = undefined;
        continue;
      }
      const outcome = await this.#follow(stop);
      if (outcome === 'unsupported') {
        if (!isUnsupported) log.info('the relay does not watch its site');
        await time.sleep(UNSUPPORTED_WAIT_MS * (1 + fraction() / 4), turn);
      } else {
        failures = outcome === 'joined' ? 0 : failures + 1;
        if (!turn.aborted) await time.sleep(backoffMs(JOIN_WAITS, failures, fraction()), turn);
      }
      isUnsupported = outcome === 'unsupported';
    }
  }

  /** One connection, until it ends. */
  async #follow(stop: AbortSignal): Promise<'joined' | 'unsupported' | 'failed'> {
    const { nodeName: node, join, witnessPort, time, log, meter } = this.#dependencies;
    const ended = new AbortController();
    let answeredAtMs = time.monotonicMs();
    const over = AbortSignal.any([stop, ended.signal, this.#turn.signal]);
    const events: SiteLineEvents = {
      received: (text) => {
        answeredAtMs = time.monotonicMs();
        if (!this.#received(text)) ended.abort();
      },
      closed: () => ended.abort(),
    };
    const joining = await join(events, over);
    if (joining.kind !== 'joined') {
      if (joining.kind === 'failed') log.debug('the site cannot be joined', { why: describeError(joining.cause) });
      return joining.kind;
    }
    const { line } = joining;
    meter.gauge('nodekeeper_agent_site_joined', 1);
    let hasAnswered = false;
    const joinedAtMs = time.monotonicMs();
    do {
      // Also before a goodbye: the relay learns the name from it.
      const sentAtMs = time.monotonicMs();
      send(line, { kind: 'beat', node, port: witnessPort() });
      if (over.aborted || this.#isLeaving()) break;
      await time.sleep(SEEN_WITHIN_MS, over);
      hasAnswered ||= answeredAtMs > joinedAtMs;
      if (answeredAtMs < sentAtMs && hasAnswered) this.#beginAnswers(stop);
      await time.sleep(SITE_BEAT_MS - SEEN_WITHIN_MS, over);
    } while (!over.aborted && !this.#isLeaving() && time.monotonicMs() - answeredAtMs <= UNANSWERED_MS);
    const forSeconds = this.#goodbyeSeconds(stop);
    if (forSeconds !== undefined) send(line, { kind: 'goodbye', forSeconds });
    else if (hasAnswered) this.#beginAnswers(stop);
    await line.close();
    meter.gauge('nodekeeper_agent_site_joined', 0);
    // Without the relay nothing says that a machine answers again.
    this.#releaseAll();
    // A relay that closes each connection at once is not asked without end.
    return hasAnswered ? 'joined' : 'failed';
  }

  #beginAnswers(stop: AbortSignal): void {
    if (this.#unseen !== undefined) return;
    this.#unseen = new AbortController();
    void this.#answerReports(AbortSignal.any([stop, this.#unseen.signal]));
  }

  /** Never rejects. */
  async #answerReports(over: AbortSignal): Promise<void> {
    const { report, time, fraction } = this.#dependencies;
    const untilMs = time.monotonicMs() + UNSEEN_MS;
    await time.sleep(ANSWERS_SPREAD_MS * fraction(), over);
    while (!over.aborted && time.monotonicMs() < untilMs) {
      report.answer();
      await time.sleep(ANSWER_EVERY_MS, over);
    }
  }

  #isLeaving(): boolean {
    return this.#dependencies.isShuttingDown() || this.#awaySeconds !== undefined;
  }

  #goodbyeSeconds(stop: AbortSignal): number | undefined {
    if (this.#awaySeconds !== undefined) return this.#awaySeconds;
    if (this.#dependencies.isShuttingDown()) return SHUTDOWN_SECONDS;
    return stop.aborted ? RESTART_SECONDS : undefined;
  }

  /** False for a line that no relay sends. */
  #received(text: string): boolean {
    const message = hubMessageOf(text);
    switch (message?.kind) {
      case 'probe':
        void this.#probeUntilReleased(message);
        return true;
      case 'confirm':
        this.#confirm(message.node);
        return true;
      case 'release':
        this.#release(message.node);
        return true;
      case 'seen':
        this.#unseen?.abort();
        this.#unseen = undefined;
        return true;
      case undefined:
        return false;
      default:
        return message satisfies never;
    }
  }

  async #probeUntilReleased({ node, address, port }: WitnessAddress): Promise<void> {
    const { nodeName, probe, time, meter } = this.#dependencies;
    this.#release(node);
    if (this.#probed.size >= PROBED_MAX || node === nodeName) return;
    const probed = { isSilent: false, isConfirmed: false, end: new AbortController() };
    this.#probed.set(node, probed);
    const untilMs = time.monotonicMs() + SILENCE_PROBED_MS;
    while (!probed.end.signal.aborted && time.monotonicMs() < untilMs) {
      const startedAtMs = time.monotonicMs();
      const outcome = await timedProbe(probe, { node, address, port }, time);
      meter.count('nodekeeper_agent_site_probes_total', { outcome });
      if (probed.end.signal.aborted) return;
      if (outcome !== 'void') probed.isSilent = outcome === 'silent';
      this.#report();
      await time.sleep(startedAtMs + PROBE_EVERY_MS - time.monotonicMs(), probed.end.signal);
    }
    if (!probed.end.signal.aborted) this.#release(node);
  }

  #confirm(node: string): void {
    const probed = this.#probed.get(node);
    if (probed !== undefined) probed.isConfirmed = true;
    this.#report();
  }

  #release(node: string): void {
    this.#probed.get(node)?.end.abort();
    this.#probed.delete(node);
    this.#report();
  }

  #releaseAll(): void {
    for (const node of [...this.#probed.keys()]) this.#release(node);
  }

  #report(): void {
    const silent = [...this.#probed]
      .filter(([, { isSilent, isConfirmed }]) => isSilent && isConfirmed)
      .map(([node]) => node);
    this.#dependencies.report.update(silent.sort());
  }
}

const send = (line: SiteLine, message: MachineMessage): void => line.send(messageText(message));
