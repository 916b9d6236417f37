/**
 * The relay's half of the witnesses (docs/witnesses.md): it receives the beats of the machines of its site, probes
 * those that are overdue, asks one other machine for a probe of each, and reports those that are silent.
 *
 * Nothing here touches a heartbeat. Lines, machines and probes are bounded; beyond a bound a machine is not watched,
 * which only means that its silence is noticed later.
 *
 * A process that hung, or a machine that was suspended, may have missed beats: then everything counts anew.
 */
import type { Log } from '../../shared/observability/log.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { ProbeWitness, SiteLine, SiteLineEvents } from '../ports/site.ts';
import type { AgentTime } from '../ports/time.ts';
import { type HubMessage, type MachineMessage, machineMessageOf, messageText } from '../rules/site-message.ts';
import {
  canWitness,
  HUNG_MS,
  isExcused,
  isLate,
  isOverdue,
  LINE_IDLE_MS,
  nextWitness,
  PROBE_EVERY_MS,
  SILENCE_PROBED_MS,
  siteView,
  type WatchedMachine,
} from '../rules/site-watch.ts';
import type { SilenceReport } from './silence-report.ts';
import { timedProbe } from './timed-probe.ts';

/** How often machines are looked at. Milliseconds. */
const STEP_MS = 100;
/** Lines, and machines that are known. */
const LINES_MAX = 1_000;
/** Probes at a time. Others wait. */
const PROBES_MAX = 64;
/** A machine that did not answer its first probe is probed again after this time. Milliseconds. */
const FIRST_PROBE_AGAIN_MS = 10_000;

export interface SiteHubDependencies {
  readonly probe: ProbeWitness;
  readonly report: Pick<SilenceReport, 'update'>;
  /** Relays no more of the heartbeats of this machine. True while one is on its way: stored, it would void a report. */
  readonly withhold: (nodeName: string) => boolean;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: Pick<AgentMeter, 'count' | 'gauge'>;
}

interface Machine extends WatchedMachine {
  line: SiteLine | undefined;
  address: string;
  port: number;
  isConnected: boolean;
  /** The last beat, without answers to probes. */
  beatAtMs: number;
  answeredAtMs: number;
  brokenAtMs: number;
  excusedUntilMs: number;
  isProbeable: boolean;
  silentSinceMs: number | undefined;
  /** It has not answered a probe since its last beat or answer. */
  hasFailedProbe: boolean;
  isProbed: boolean;
  probeAtMs: number;
}

interface OpenLine {
  readonly line: SiteLine;
  machine: Machine | undefined;
  receivedAtMs: number;
}

export class SiteHub {
  readonly #dependencies: SiteHubDependencies;
  readonly #lines = new Set<OpenLine>();
  readonly #machines = new Map<string, Machine>();
  /** By name of a suspected machine: the machine that was asked for a probe, and whether it knows the silence. */
  readonly #witnesses = new Map<string, { readonly name: string | undefined; isConfirmed: boolean }>();
  /** Names of the machines that are reported. */
  #reported: ReadonlySet<string> = new Set();
  #lastWitness = '';
  #probes = 0;
  #hadOverdue = false;
  #isHeldBack = false;
  #hasStopped = false;
  #steppedAtMs: number;
  #steppedAtUptimeMs: number;

  constructor(dependencies: SiteHubDependencies) {
    this.#dependencies = dependencies;
    this.#steppedAtMs = dependencies.time.monotonicMs();
    this.#steppedAtUptimeMs = dependencies.time.uptimeMs();
  }

  /** A machine has connected. */
  accept(line: SiteLine): SiteLineEvents {
    const open: OpenLine = { line, machine: undefined, receivedAtMs: this.#dependencies.time.monotonicMs() };
    if (this.#hasStopped || this.#lines.size >= LINES_MAX) {
      void line.close();
      return { received() {}, closed() {} };
    }
    this.#lines.add(open);
    return {
      received: (text) => {
        const message = this.#lines.has(open) ? machineMessageOf(text) : undefined;
        if (message === undefined) void line.close();
        else this.#received(open, message);
      },
      closed: () => this.#closed(open),
    };
  }

  /** Watches until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { time } = this.#dependencies;
    this.#noteStep();
    while (!stop.aborted) {
      await time.sleep(STEP_MS, stop);
      if (!stop.aborted) this.#step();
    }
    // A connection that is opened now would keep the server of the relay open.
    this.#hasStopped = true;
    await Promise.all([...this.#lines].map(({ line }) => line.close()));
  }

  #step(): void {
    this.#restartAfterHang();
    this.#noteStep();
    const nowMs = this.#steppedAtMs;
    for (const open of this.#lines) if (nowMs - open.receivedAtMs > LINE_IDLE_MS) void open.line.close();
    let overdue = 0;
    for (const machine of this.#machines.values()) {
      this.#look(machine, nowMs);
      if (isOverdue(machine, nowMs)) overdue += 1;
    }
    // The last review without an overdue machine withdraws what the one before reported.
    if (overdue > 0 || this.#hadOverdue) this.#review();
    this.#hadOverdue = overdue > 0;
  }

  #noteStep(): void {
    this.#steppedAtMs = this.#dependencies.time.monotonicMs();
    this.#steppedAtUptimeMs = this.#dependencies.time.uptimeMs();
  }

  /** Called before anything is concluded from time that has passed. */
  #restartAfterHang(): void {
    const { time, log } = this.#dependencies;
    const stalledMs = Math.max(time.monotonicMs() - this.#steppedAtMs, time.uptimeMs() - this.#steppedAtUptimeMs);
    if (stalledMs <= STEP_MS + HUNG_MS) return;
    log.info('this relay did not run for a while; the machines of its site are watched anew', { stalledMs });
    this.#noteStep();
    this.#countAnew();
  }

  /** Each machine is watched again from its next beat on. */
  #countAnew(): void {
    this.#askWitnesses([], [], this.#dependencies.time.monotonicMs());
    this.#machines.clear();
    this.#countWatched();
    this.#review();
  }

  #received(open: OpenLine, message: MachineMessage): void {
    this.#restartAfterHang();
    const nowMs = this.#dependencies.time.monotonicMs();
    open.receivedAtMs = nowMs;
    if (message.kind === 'goodbye') {
      if (open.machine !== undefined) open.machine.excusedUntilMs = nowMs + message.forSeconds * 1_000;
      void open.line.close();
      return;
    }
    const machine = this.#machineOf(open, message);
    if (machine === undefined) {
      void open.line.close();
      return;
    }
    machine.beatAtMs = nowMs;
    machine.excusedUntilMs = Number.NEGATIVE_INFINITY;
    noteAnswer(machine, nowMs);
    send(open.line, { kind: 'seen' });
  }

  /** The machine of a beat. The newest connection with a name has it. */
  #machineOf(open: OpenLine, { node, port }: Extract<MachineMessage, { kind: 'beat' }>): Machine | undefined {
    const { line } = open;
    const nowMs = this.#dependencies.time.monotonicMs();
    const known = this.#machines.get(node);
    const isReplaced = open.machine !== undefined && known?.line !== undefined && known.line !== line;
    if (isReplaced || (open.machine !== undefined && open.machine.name !== node)) return undefined;
    const machine = known ?? this.#newMachine(node, nowMs);
    if (machine === undefined) return undefined;
    open.machine = machine;
    const isNew = machine.line !== line;
    if (isNew) {
      const replaced = machine.line;
      machine.line = line;
      machine.isConnected = true;
      if (replaced !== undefined) void replaced.close();
    }
    if (machine.address !== line.address || machine.port !== port) {
      machine.address = line.address;
      machine.port = port;
      machine.isProbeable = false;
      machine.probeAtMs = nowMs;
    }
    if (isNew) this.#countWatched();
    return machine;
  }

  /** Undefined: too many are known. One that is away, or lost its connection, makes room. */
  #newMachine(node: string, nowMs: number): Machine | undefined {
    if (this.#machines.size >= LINES_MAX) {
      const absent = [...this.#machines.values()].find(({ isConnected }) => !isConnected);
      if (absent === undefined) return undefined;
      this.#machines.delete(absent.name);
    }
    const machine = newMachine(node, nowMs);
    this.#machines.set(node, machine);
    return machine;
  }

  #closed(open: OpenLine): void {
    this.#lines.delete(open);
    const { machine, line } = open;
    if (machine?.line !== line) return;
    machine.line = undefined;
    machine.isConnected = false;
    machine.brokenAtMs = this.#dependencies.time.monotonicMs();
    this.#countWatched();
  }

  #countWatched(): void {
    const watched = [...this.#machines.values()].filter((each) => each.isConnected && each.isProbeable).length;
    this.#dependencies.meter.gauge('nodekeeper_agent_site_machines', watched);
  }

  #look(machine: Machine, nowMs: number): void {
    if (isExcused(machine, nowMs)) return;
    const { isConnected, silentSinceMs, beatAtMs } = machine;
    const isForgotten =
      (silentSinceMs !== undefined && nowMs - silentSinceMs >= SILENCE_PROBED_MS) ||
      // It answers probes without beats: its agent has another relay now, or cannot connect.
      (!isConnected && nowMs - Math.max(beatAtMs, machine.excusedUntilMs) >= SILENCE_PROBED_MS);
    if (isForgotten) {
      void machine.line?.close();
      this.#machines.delete(machine.name);
      return;
    }
    // Without a port: its silence counts for the share of the site that is silent, and is not reported.
    const isUnanswered = machine.hasFailedProbe || machine.port === 0;
    if (isUnanswered && isLate(machine, nowMs)) machine.silentSinceMs ??= nowMs;
    const isToProbe = machine.port !== 0 && (isOverdue(machine, nowMs) || !machine.isProbeable);
    if (!isToProbe || machine.isProbed || nowMs < machine.probeAtMs || this.#probes >= PROBES_MAX) return;
    void this.#probe(machine, nowMs);
  }

  async #probe(machine: Machine, startedAtMs: number): Promise<void> {
    const { probe, time, meter } = this.#dependencies;
    const { name: node, address, port } = machine;
    machine.isProbed = true;
    machine.probeAtMs = startedAtMs + (isOverdue(machine, startedAtMs) ? PROBE_EVERY_MS : FIRST_PROBE_AGAIN_MS);
    this.#probes += 1;
    const outcome = await timedProbe(probe, { node, address, port }, time);
    this.#probes -= 1;
    machine.isProbed = false;
    meter.count('nodekeeper_agent_site_probes_total', { outcome });
    this.#restartAfterHang();
    const isCurrent = this.#machines.get(node) === machine && machine.address === address && machine.port === port;
    if (!isCurrent || outcome === 'void') return;
    const nowMs = time.monotonicMs();
    if (outcome === 'answered') {
      machine.isProbeable = true;
      this.#countWatched();
      machine.probeAtMs = nowMs;
      noteAnswer(machine, nowMs);
    } else if (machine.answeredAtMs <= startedAtMs) {
      machine.hasFailedProbe = true;
      if (isLate(machine, nowMs)) machine.silentSinceMs ??= nowMs;
    }
    this.#review();
  }

  /** Reports what holds now, and asks machines for probes. */
  #review(): void {
    const { report, withhold, meter, log, time } = this.#dependencies;
    const nowMs = time.monotonicMs();
    const machines = [...this.#machines.values()];
    const view = siteView(machines, nowMs);
    const { silent: found, suspected } = view.kind === 'clear' ? view : { silent: [], suspected: [] };
    const silent = found.filter((name) => this.#reported.has(name) || !withhold(name));
    this.#reported = new Set(silent);
    meter.gauge('nodekeeper_agent_site_silent', silent.length);
    if (view.kind !== 'clear' && !this.#isHeldBack) {
      log.warn(
        'many machines of the site are silent at once, so none is reported: the network of this relay may be at fault',
        {
          silent: machines.filter((each) => isLate(each, nowMs)).length,
          machines: machines.length,
        },
      );
    }
    this.#isHeldBack = view.kind !== 'clear';
    report.update(silent);
    this.#askWitnesses(suspected, silent, nowMs);
    if (view.kind === 'cutOff') this.#countAnew();
  }

  #askWitnesses(suspected: readonly string[], silent: readonly string[], nowMs: number): void {
    for (const [accused, { name }] of this.#witnesses) {
      if (suspected.includes(accused)) continue;
      this.#witnesses.delete(accused);
      this.#sendTo(name, { kind: 'release', node: accused });
    }
    for (const accused of suspected) {
      const witness = this.#witnessOf(accused, nowMs);
      if (witness.isConfirmed || !silent.includes(accused)) continue;
      witness.isConfirmed = true;
      this.#sendTo(witness.name, { kind: 'confirm', node: accused });
    }
  }

  /** The machine that probes this one. It is asked now if it was not before, or if the one before is lost. */
  #witnessOf(accused: string, nowMs: number): { readonly name: string | undefined; isConfirmed: boolean } {
    const known = this.#witnesses.get(accused);
    const asked = this.#machines.get(known?.name ?? '');
    if (known !== undefined && asked !== undefined && canWitness(asked, nowMs)) return known;
    const name = nextWitness(this.#machines.values(), this.#lastWitness, nowMs);
    const witness = { name, isConfirmed: false };
    this.#witnesses.set(accused, witness);
    this.#lastWitness = name ?? this.#lastWitness;
    const { address, port } = this.#machines.get(accused)!;
    this.#sendTo(name, { kind: 'probe', node: accused, address, port });
    return witness;
  }

  #sendTo(name: string | undefined, message: HubMessage): void {
    const line = this.#machines.get(name ?? '')?.line;
    if (line !== undefined) send(line, message);
  }
}

const send = (line: SiteLine, message: HubMessage): void => line.send(messageText(message));

function noteAnswer(machine: Machine, nowMs: number): void {
  machine.answeredAtMs = nowMs;
  machine.silentSinceMs = undefined;
  machine.hasFailedProbe = false;
}

const newMachine = (name: string, nowMs: number): Machine => ({
  name,
  line: undefined,
  address: '',
  port: 0,
  isConnected: false,
  beatAtMs: nowMs,
  answeredAtMs: nowMs,
  brokenAtMs: Number.NEGATIVE_INFINITY,
  excusedUntilMs: Number.NEGATIVE_INFINITY,
  isProbeable: false,
  silentSinceMs: undefined,
  hasFailedProbe: false,
  isProbed: false,
  probeAtMs: nowMs,
});
