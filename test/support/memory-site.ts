/**
 * A site in memory: a relay and machines with the agent's own loops, over lines and probes that can be cut in each
 * direction.
 */
import { SilenceReport } from '../../agent/app/silence-report.ts';
import { SiteHub, type SiteHubDependencies } from '../../agent/app/site-hub.ts';
import { SiteMember, type SiteMemberDependencies } from '../../agent/app/site-member.ts';
import type { ProbeWitness, SiteLine, SiteLineEvents } from '../../agent/ports/site.ts';
import type { AgentTime, Fraction } from '../../agent/ports/time.ts';
import { PROBE_TIMEOUT_MS } from '../../agent/rules/site-watch.ts';
import { silentLog, silentMeter } from './agent-api.ts';

const PORT = 7_445;

type End = 'hub' | 'own';

interface OpenLine {
  readonly name: string;
  readonly events: Readonly<Record<End, SiteLineEvents>>;
  /** Ends that do not know that the line is closed. */
  readonly open: Set<End>;
}

export interface MemorySiteOptions {
  /** Name of the relay. @default 'hub' */
  readonly hub?: string;
  readonly fraction?: Fraction;
  readonly withhold?: SiteHubDependencies['withhold'];
}

export class MemorySite {
  readonly #time: AgentTime;
  readonly #hubName: string;
  readonly #fraction: Fraction;
  readonly #addresses = new Map<string, string>();
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

  constructor(time: AgentTime, { hub = 'hub', fraction = () => 0.5, withhold = () => false }: MemorySiteOptions = {}) {
    this.#time = time;
    this.#hubName = hub;
    this.#fraction = fraction;
    const warn = (message: string): void => void this.logged.push(message);
    this.hub = new SiteHub({
      probe: this.#probeFrom(hub),
      report: this.reportOf(hub),
      withhold,
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
    const made = new SilenceReport({ role: name === this.#hubName ? 'hub' : 'machine', time: this.#time });
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
        fraction: this.#fraction,
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
    for (const each of this.#lines) if (each.name === name) this.#close(each, 'own');
    this.powerOff(name);
  }

  /** The relay is killed. */
  killHub(): void {
    for (const each of this.#lines) this.#close(each, 'hub');
    this.powerOff(this.#hubName);
  }

  /** The machine loses its power. `start` starts it again. */
  async crash(name: string): Promise<void> {
    this.powerOff(name);
    await this.stop(name);
    this.#reports.delete(name);
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

  /** The address of a machine on the site's network. */
  addressOf(name: string): string {
    const address = this.#addresses.get(name) ?? `10.0.${this.#addresses.size >> 8}.${this.#addresses.size & 255}`;
    this.#addresses.set(name, address);
    return address;
  }

  /** Connects to the relay as a machine that says anything. */
  connect(name: string): { say(message: object): void; readonly isOpen: () => boolean } {
    let isOpen = true;
    const events = this.hub.accept({
      address: this.addressOf(name),
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
    await this.#running;
  }

  #isCut(from: string, to: string): boolean {
    return [`${from}>${to}`, `${from}>*`, `*>${to}`].some((way) => this.#cuts.has(way));
  }

  /** Closed at one end. The other one learns it unless the way is cut. */
  #close({ name, events, open }: OpenLine, by: End): void {
    const isLearned = !this.#isCut(name, this.#hubName) && !this.#isCut(this.#hubName, name);
    for (const end of ['hub', 'own'] as const) {
      if ((end === by || isLearned) && open.delete(end)) events[end].closed();
    }
    for (const each of this.#lines) if (each.open.size === 0) this.#lines.delete(each);
  }

  #joinOf(name: string): SiteMemberDependencies['join'] {
    return async (own, signal) => {
      const hubName = this.#hubName;
      if (this.#isCut(name, hubName) || this.#isCut(hubName, name)) {
        await this.#time.sleep(5_000, signal);
        return { kind: 'failed', cause: new Error('no answer') };
      }
      if (!this.isSupported) return { kind: 'unsupported' };
      const endOf = (end: End, address: string): SiteLine => {
        const [from, to, other] = end === 'hub' ? ([hubName, name, 'own'] as const) : ([name, hubName, 'hub'] as const);
        return {
          address,
          send: (text) => {
            const isCut = this.#isCut(from, to) || this.#cuts.has(`line>${name}`);
            if (open.open.size === 2 && !isCut) open.events[other].received(text);
          },
          close: async () => this.#close(open, end),
        };
      };
      const hub = this.hub.accept(endOf('hub', this.addressOf(name)));
      const open: OpenLine = { name, events: { hub, own }, open: new Set<End>(['hub', 'own']) };
      this.#lines.add(open);
      return { kind: 'joined', line: endOf('own', hubName) };
    };
  }

  #probeFrom(from: string): ProbeWitness {
    return async ({ node, address }) => {
      this.probes.push(`${from}>${node}`);
      const isReached = !this.#isCut(from, node) && !this.#isCut(node, from);
      if (isReached || address !== this.addressOf(node))
        return this.#machines.has(node) && address === this.addressOf(node);
      await this.#time.sleep(this.probeMs.get(from) ?? PROBE_TIMEOUT_MS);
      return false;
    };
  }
}
