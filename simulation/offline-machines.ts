/** The machines of a run with what runs on them, and the trouble that they have: link, power, agent, wall clock. */
import { offlineStopSeconds } from '../shared/kinds/pods/offline-stop.ts';
import { COPY_OF } from '../shared/kinds/pods/site-copy.ts';
import type { KubePod } from '../shared/kinds/types.ts';
import type { SendRequest } from './heartbeat-doors.ts';
import { ANSWER_LATE_MAX_MS } from './machine-link.ts';
import { repeatRandomly } from './people.ts';
import { PodHost, type PodHostOptions } from './running-pods.ts';
import { oneOf } from './seeded-random.ts';

const MEAN_MS = { trouble: 120_000, step: 150_000 } as const;
const DAY_MS = 86_400_000;
/** Largest wall clock step in decades of seconds below a day. */
const STEP_DECADES = 4;
const SHORT_MAX_MS = 300_000;
const SHORT_SHARE = 0.2;
/** Around the shortest time of a pod with its grace period and the margin, and longer. */
const LONG_MIN_MS = 560_000;
/** Most pods with the shortest time are replaced by then. */
const REPLACED_MS = 800_000;
const LONG_MAX_MS = 1_800_000;
/** An agent is down for less than the margin of the rule, with the time of a look. Milliseconds. */
const AGENT_DOWN_MAX_MS = 40_000;
const BOOT_MAX_MS = 60_000;
const SHORT_OFF_MAX_MS = 15_000;
/** Cuts of a link that flaps. */
const CUTS = 6;

/** What befalls one machine. */
export const TROUBLES = {
  cut: 'no link',
  lateAnswers: 'no link, and the answers to its last heartbeats arrive in the middle of it',
  off: 'no power',
  bootInCut: 'it boots while it has no link',
  cutAtBoot: 'the link fails while it boots, and answers arrive after the cut',
  agentRestarts: 'its agent restarts while it has no link',
  flaps: 'a link that fails again and again',
} as const;
export type TroubleName = keyof typeof TROUBLES;

export interface OfflineMachines {
  /** A machine starts. It returns how the machine sends through its link from now on. */
  boot(name: string, send: SendRequest, isGone: () => boolean): SendRequest;
  /** Sends as the agent of a machine that has started. */
  counting(name: string, send: SendRequest, isGone: () => boolean): SendRequest;
  powerOff(name: string): void;
  /** The way of a machine to the hub of its site is cut, and no other one. Before its end the agent restarts. */
  cutFromHub(name: string, lastsMs: number): void;
  /** Machines that run copies of the hub of their site. */
  withCopies(): readonly string[];
}

export interface OfflineMachinesOptions extends PodHostOptions {
  readonly fraction: () => number;
  readonly troubles: readonly TroubleName[];
  /** Switches a machine off for a while. */
  readonly crash: (name: string, offMs: number) => void;
  /** A machine has no link, in one direction at least, until then. */
  readonly onCut: (name: string, untilMs: number) => void;
  /** Its way to the hub is cut until then, and no other one. */
  readonly onHubCut: (name: string, untilMs: number) => void;
  readonly onClockStep: (name: string) => void;
}

export function offlineMachines(options: OfflineMachinesOptions): OfflineMachines {
  const machines = new TroubledMachines(options);
  void repeatRandomly(options, { leastMs: 5_000, meanMs: MEAN_MS.trouble }, async () => machines.trouble());
  void repeatRandomly(options, { leastMs: 5_000, meanMs: MEAN_MS.step }, async () => machines.stepClock());
  return machines;
}

class TroubledMachines implements OfflineMachines {
  readonly #options: OfflineMachinesOptions;
  readonly #hosts = new Map<string, PodHost>();

  constructor(options: OfflineMachinesOptions) {
    this.#options = options;
  }

  boot(name: string, send: SendRequest, isGone: () => boolean): SendRequest {
    const host = this.#hosts.get(name) ?? new PodHost(name, this.#options);
    this.#hosts.set(name, host);
    return host.boot(send, isGone);
  }

  counting(name: string, send: SendRequest, isGone: () => boolean): SendRequest {
    return this.#hosts.get(name)!.counting(send, isGone);
  }

  powerOff(name: string): void {
    this.#hosts.get(name)?.powerOff();
  }

  cutFromHub(name: string, lastsMs: number): void {
    const { time, log, onCut, onHubCut } = this.#options;
    const host = this.#hosts.get(name);
    if (host === undefined) return;
    const nowMs = time.nowMs();
    const [fromMs, untilMs] = [nowMs, nowMs + lastsMs];
    host.hubLink.cut({ answersFromMs: fromMs, requestsFromMs: fromMs, answersUntilMs: untilMs, untilMs });
    onHubCut(name, untilMs);
    log(name, `its way to the hub is cut for ${Math.round(lastsMs)} ms`);
    // The next agent does not know which pods the one before has stopped for good.
    time.after(0.9 * lastsMs, () => {
      host.restartAgent(AGENT_DOWN_MAX_MS / 2);
      onCut(name, time.nowMs() + AGENT_DOWN_MAX_MS + ANSWER_LATE_MAX_MS);
    });
  }

  withCopies(): readonly string[] {
    const isCopy = ({ metadata }: KubePod): boolean => metadata.annotations?.[COPY_OF] !== undefined;
    return [...this.#hosts.values()].filter((host) => host.runs(isCopy)).map(({ name }) => name);
  }

  /** Begins one trouble of one machine, mostly of one that runs pods that must not run twice. */
  trouble(): void {
    const hosts = [...this.#hosts.values()].filter(({ link, isOn }) => isOn && !link.isCut);
    const running = hosts.filter((host) => host.runs((pod) => offlineStopSeconds(pod) !== undefined));
    const host = oneOf(running.length > 0 && this.#chance(0.8) ? running : hosts, this.#options.fraction);
    if (host === undefined) return;
    const name = oneOf(this.#options.troubles, this.#options.fraction);
    if (name !== undefined) this.#beginnings[name](host, this.#lastsMs());
  }

  stepClock(): void {
    const host = oneOf([...this.#hosts.values()], this.#options.fraction);
    const size = DAY_MS * 10 ** (-STEP_DECADES * this.#options.fraction());
    const byMs = Math.round(this.#chance(0.5) ? size : -size);
    if (host === undefined) return;
    host.clock.step(byMs);
    this.#options.onClockStep(host.name);
    this.#options.log(host.name, `its wall clock steps by ${byMs} ms`);
  }

  readonly #beginnings: Readonly<Record<TroubleName, (host: PodHost, lastsMs: number) => void>> = {
    cut: (host, lastsMs) => this.#cut(host, { lastsMs }),
    lateAnswers: (host, lastsMs) =>
      this.#cut(host, { lastsMs, oneWayMs: 20_000, answersAfterMs: this.#between(60_000, 540_000) }),
    off: ({ name }, lastsMs) => this.#options.crash(name, lastsMs),
    bootInCut: (host, lastsMs) => {
      this.#cut(host, { lastsMs });
      const offMs = this.#between(2_000, BOOT_MAX_MS);
      this.#within(lastsMs, () => this.#options.crash(host.name, offMs));
    },
    cutAtBoot: (host) => {
      // It is off for too short a time for a mark: its pods are still there when it lists them.
      const offMs = this.#between(1_000, SHORT_OFF_MAX_MS);
      const lastsMs = this.#between(REPLACED_MS, LONG_MAX_MS);
      this.#options.crash(host.name, offMs);
      this.#options.time.after(offMs + this.#between(0, 4_000), () => this.#cut(host, { lastsMs, oneWayMs: 4_500 }));
    },
    agentRestarts: (host, lastsMs) => {
      this.#cut(host, { lastsMs });
      this.#within(lastsMs, () => {
        const downMs = this.#between(1_000, AGENT_DOWN_MAX_MS);
        host.restartAgent(downMs);
        this.#options.onCut(host.name, this.#options.time.nowMs() + downMs + ANSWER_LATE_MAX_MS);
      });
    },
    flaps: (host) => {
      let atMs = 0;
      for (let cuts = 0; cuts < CUTS; cuts += 1) {
        const lastsMs = this.#between(5_000, SHORT_MAX_MS);
        this.#options.time.after(atMs, () => this.#cut(host, { lastsMs }));
        atMs += lastsMs + this.#between(1_000, 30_000);
      }
    },
  };

  /** `answersAfterMs`: when answers pass again; absent: with the requests. */
  #cut(
    host: PodHost,
    {
      lastsMs,
      oneWayMs = 0,
      answersAfterMs = lastsMs,
    }: { readonly lastsMs: number; readonly oneWayMs?: number; readonly answersAfterMs?: number },
  ): void {
    const { time, onCut, log } = this.#options;
    const nowMs = time.nowMs();
    const cut = {
      answersFromMs: nowMs,
      requestsFromMs: nowMs + oneWayMs,
      answersUntilMs: nowMs + Math.min(answersAfterMs, lastsMs),
      untilMs: nowMs + lastsMs,
    };
    // The way to the hub of the site fails as often as that to the cluster, and both do together.
    const which = this.#options.askHub === undefined ? 1 : this.#options.fraction();
    if (which > 0.33) host.link.cut(cut);
    if (which < 0.67) host.hubLink.cut(cut);
    onCut(host.name, nowMs + lastsMs + ANSWER_LATE_MAX_MS);
    log(host.name, `its link is cut for ${Math.round(lastsMs)} ms, for requests after ${Math.round(oneWayMs)} ms`);
  }

  #lastsMs(): number {
    return this.#chance(SHORT_SHARE) ? this.#between(10_000, SHORT_MAX_MS) : this.#between(LONG_MIN_MS, LONG_MAX_MS);
  }

  #within(withinMs: number, happen: () => void): void {
    this.#options.time.after(withinMs * this.#options.fraction(), happen);
  }

  #chance(share: number): boolean {
    return this.#options.fraction() < share;
  }

  #between(least: number, most: number): number {
    return least + this.#options.fraction() * (most - least);
  }
}
