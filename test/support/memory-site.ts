/**
 * A site in memory: a relay and machines with the agent's own loops, over lines and probes that can be cut in each
 * direction.
 */
import { SilenceReport } from '../../agent/app/silence-report.ts';
import { SiteHub } from '../../agent/app/site-hub.ts';
import { SiteMember, type SiteMemberDependencies } from '../../agent/app/site-member.ts';
import type { ProbeWitness, SiteLineEvents } from '../../agent/ports/site.ts';
import { PROBE_TIMEOUT_MS } from '../../agent/rules/site-watch.ts';
import { silentLog, silentMeter } from './agent-api.ts';
import type { SteppedTime } from './stepped-time.ts';

const HUB = 'hub';
const PORT = 7_445;
/** Machines have one letter as their name. */
const addressOf = (name: string): string => `10.0.0.${name.charCodeAt(0)}`;

interface OpenLine {
  readonly name: string;
  readonly hubEnd: SiteLineEvents;
  readonly ownEnd: SiteLineEvents;
  isOpen: boolean;
}

export class MemorySite {
  readonly #time: SteppedTime;
  readonly #lines = new Set<OpenLine>();
  /** Cut ways: `from>to`. */
  readonly #cuts = new Set<string>();
  readonly #machines = new Map<string, { readonly stop: AbortController; readonly running: Promise<void> }>();
  readonly #reports = new Map<string, SilenceReport>();
  readonly #stop = new AbortController();
  readonly hub: SiteHub;
  readonly logged: string[] = [];
  /** Probes, each `from>to`. */
  readonly probes: string[] = [];
  /** By name: members that shut down. */
  readonly shuttingDown = new Set<string>();
  readonly members = new Map<string, SiteMember>();
  /** Whether the relay accepts connections of its site. */
  isSupported = true;
  /** By name: the port that a machine says it answers on. */
  readonly ports = new Map<string, number>();
  /** By name: how long its probes take that receive no answer. Milliseconds. */
  readonly probeMs = new Map<string, number>();
  readonly #running: Promise<void>;

  constructor(time: SteppedTime) {
    this.#time = time;
    const warn = (message: string): void => void this.logged.push(message);
    this.hub = new SiteHub({
      probe: this.#probeFrom(HUB),
      report: this.reportOf(HUB),
      time,
      log: { ...silentLog, info: warn, warn },
      meter: silentMeter,
    });
    this.#running = this.hub.run(this.#stop.signal);
  }

  /** What this machine, or the relay, reports. */
  reportOf(name: string): SilenceReport {
    const known = this.#reports.get(name);
    if (known !== undefined) return known;
    const made = new SilenceReport({ role: name === HUB ? 'hub' : 'machine', time: this.#time });
    this.#reports.set(name, made);
    return made;
  }

  /** Texts of all reports, sorted. */
  reports(): string[] {
    return [...this.#reports.values()].flatMap((each) => each.text() ?? []).sort();
  }

  start(...names: readonly string[]): void {
    for (const name of names) {
      const stop = new AbortController();
      const member = new SiteMember({
        nodeName: name,
        join: this.#joinOf(name),
        probe: this.#probeFrom(name),
        report: this.reportOf(name),
        witnessPort: () => this.ports.get(name) ?? PORT,
        isShuttingDown: () => this.shuttingDown.has(name),
        time: this.#time,
        fraction: () => 0.5,
        log: silentLog,
        meter: silentMeter,
      });
      this.members.set(name, member);
      this.#machines.set(name, { stop, running: member.run(stop.signal) });
    }
  }

  /** The machine loses its power: nothing is closed. */
  powerOff(...names: readonly string[]): void {
    for (const name of names) this.cut(`${name}>*`, `*>${name}`);
  }

  /** The process is killed: the kernel closes its connections. */
  kill(name: string): void {
    this.powerOff(name);
    for (const each of this.#lines) if (each.name === name) this.#close(each);
  }

  /** The relay is killed. */
  killHub(): void {
    this.powerOff(HUB);
    for (const each of this.#lines) this.#close(each);
  }

  /** The agent stops. */
  async stop(name: string): Promise<void> {
    const machine = this.#machines.get(name)!;
    machine.stop.abort();
    this.#machines.delete(name);
    await machine.running;
  }

  /** Cuts ways, each `from>to`. `line>NAME` cuts the connection of this machine alone. */
  cut(...ways: readonly string[]): void {
    for (const way of ways) this.#cuts.add(way);
  }

  restore(...ways: readonly string[]): void {
    for (const way of ways) this.#cuts.delete(way);
  }

  /** Connects to the relay as a machine that says anything. */
  connect(name: string): { say(message: object): void; readonly isOpen: () => boolean } {
    let isOpen = true;
    const events = this.hub.accept({
      address: addressOf(name),
      send() {},
      close: async () => {
        const wasOpen = isOpen;
        isOpen = false;
        await undefined;
        if (wasOpen) events.closed();
      },
    });
    return { say: (message) => events.received(JSON.stringify(message)), isOpen: () => isOpen };
  }

  async end(): Promise<void> {
    for (const name of [...this.#machines.keys()]) await this.stop(name);
    this.#stop.abort();
    await this.#time.pass(1_000);
    await this.#running;
  }

  #isCut(from: string, to: string): boolean {
    return [`${from}>${to}`, `${from}>*`, `*>${to}`].some((way) => this.#cuts.has(way));
  }

  #close(open: OpenLine): void {
    if (!open.isOpen) return;
    open.isOpen = false;
    this.#lines.delete(open);
    open.hubEnd.closed();
    open.ownEnd.closed();
  }

  #joinOf(name: string): SiteMemberDependencies['join'] {
    return async (ownEnd, signal) => {
      if (this.#isCut(name, HUB) || this.#isCut(HUB, name)) {
        await this.#time.sleep(5_000, signal);
        return { kind: 'failed', cause: new Error('no answer') };
      }
      if (!this.isSupported) return { kind: 'unsupported' };
      const carry = (from: string, to: string, end: () => SiteLineEvents) => (line: string) => {
        if (open.isOpen && !this.#isCut(from, to) && !this.#cuts.has(`line>${name}`)) end().received(line);
      };
      const close = async (): Promise<void> => this.#close(open);
      const send = carry(HUB, name, () => ownEnd);
      const hubEnd = this.hub.accept({ address: addressOf(name), send, close });
      const open: OpenLine = { name, hubEnd, ownEnd, isOpen: true };
      this.#lines.add(open);
      return { kind: 'joined', line: { address: HUB, send: carry(name, HUB, () => hubEnd), close } };
    };
  }

  #probeFrom(from: string): ProbeWitness {
    return async ({ node, address }) => {
      this.probes.push(`${from}>${node}`);
      const isReached = !this.#isCut(from, node) && !this.#isCut(node, from);
      if (isReached || address !== addressOf(node)) return this.#machines.has(node) && address === addressOf(node);
      await this.#time.sleep(this.probeMs.get(from) ?? PROBE_TIMEOUT_MS);
      return false;
    };
  }
}
