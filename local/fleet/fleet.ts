/** A fleet of simulated machines in one process, against any Kubernetes API. */
import { setTimeout as startTimer } from 'node:timers';
import { answeredWith, describeAnswer } from '../../agent/rules/kube-answer.ts';
import { leaseDurationSeconds, renewIntervalMs } from '../../agent/rules/lease.ts';
import { promiseOfSilence } from '../../agent/rules/planned-silence.ts';
import type { Clock, RandomSource } from '../../shared/ports/clock.ts';
import { createApiClient, type SendRequest } from './api-client.ts';
import { createMachine, type Machine, type MachineStatus, type Timers } from './machine.ts';
import type { FleetCounters, MachineSettings } from './machine-state.ts';
import { nameMachines, selectNames } from './names.ts';

export interface FleetOptions {
  /** Base URL of the API, for example https://127.0.0.1:6443. */
  readonly url: string;
  /** Certificate authority, PEM text or the path of a PEM file. */
  readonly ca?: string;
  /** Bearer token; it must be allowed to write every Node of the fleet. */
  readonly token: string;
  /** Number of machines. */
  readonly nodes: number;
  /** Zone labels, assigned to the machines in turn. Each zone has a letter in the names of its machines. */
  readonly zones?: readonly string[];
  readonly region?: string;
  /** spec.providerID by machine name, for machines with a cloud instance. */
  readonly providerIds?: ReadonlyMap<string, string>;
  /** Names of machines that send nothing before the first call of `beat`. */
  readonly silent?: ReadonlySet<string>;
  readonly beatIntervalSeconds?: number;
  readonly leaseDurationSeconds?: number;
  /** False: the answers to heartbeats do not change these times. @default true */
  readonly followsProfile?: boolean;
  /** Time between status posts when nothing changed. Seconds. */
  readonly statusIntervalSeconds?: number;
  /** Interval at which a machine reads its Node. Seconds. Default: at most ten reads per second in the whole fleet. */
  readonly lookIntervalSeconds?: number;
  /** Maximum number of connections. While all are busy, renewals are sent before registrations. */
  readonly connectionsMax?: number;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly random?: Pick<RandomSource, 'fraction'>;
  /** Replaces HTTP; for tests. */
  readonly send?: SendRequest;
}

export interface FleetStatus extends Readonly<FleetCounters> {
  readonly machines: number;
  readonly beating: number;
  readonly registered: number;
}

export type FleetOutcome =
  | { readonly kind: 'done'; readonly names: readonly string[] }
  /** These names or globs match no machine; nothing was done. */
  | { readonly kind: 'unknown'; readonly names: readonly string[] };

export interface Nap {
  /** Whole seconds. */
  readonly seconds: number;
  /** Text for people. */
  readonly reason: string;
}

export type SleepOutcome =
  | FleetOutcome
  /** The API refused the promise of this machine, or could not be reached. */
  | { readonly kind: 'refused'; readonly name: string; readonly why: string };

export interface Fleet {
  /** Stops these machines at once, as a power cut does. `names`: globs. */
  silence(names: readonly string[]): FleetOutcome;
  /**
   * Announces a silence on the Node of each machine, as `nodekeeper-agent sleep` does, and silences those for which the API
   * accepted it. Each beats again at the promised end. `names`: globs.
   */
  sleep(names: readonly string[], nap: Nap): Promise<SleepOutcome>;
  /** Starts these machines. A missing Node is registered again. `names`: globs. */
  beat(names: readonly string[]): FleetOutcome;
  list(): MachineStatus[];
  status(): FleetStatus;
  /** Stops all machines and closes the connections. Nodes and Leases are not changed. */
  stop(): Promise<void>;
}

/** nodeStatusUpdateFrequency of a kubelet. */
const LOOK_INTERVAL_SECONDS_MIN = 10;
const LOOKS_PER_SECOND_MAX = 10;

export const DEFAULT_ZONES = ['local-a', 'local-b', 'local-c'] as const;
export const DEFAULT_REGION = 'local';

/** Starts the machines, and does not wait for their registration (see status()). They register in the order of names. */
export function startFleet(options: FleetOptions): Fleet {
  const durationSeconds = leaseDurationSeconds(options.leaseDurationSeconds);
  const settings: MachineSettings = {
    region: options.region ?? DEFAULT_REGION,
    beatIntervalSeconds: options.beatIntervalSeconds ?? renewIntervalMs(durationSeconds) / 1_000,
    leaseDurationSeconds: durationSeconds,
    followsProfile: options.followsProfile ?? true,
    statusIntervalSeconds: options.statusIntervalSeconds ?? 300,
    lookIntervalSeconds:
      options.lookIntervalSeconds ?? Math.max(LOOK_INTERVAL_SECONDS_MIN, options.nodes / LOOKS_PER_SECOND_MAX),
  };
  const counters: FleetCounters = { registrations: 0, beats: 0, statusPosts: 0, conflicts: 0, failedTurns: 0 };
  const client =
    options.send === undefined
      ? createApiClient({
          url: options.url,
          ...(options.ca === undefined ? {} : { ca: options.ca }),
          token: options.token,
          connectionsMax: options.connectionsMax ?? 32,
          timeoutMs: Math.min(10, settings.leaseDurationSeconds) * 1_000,
        })
      : undefined;
  const dependencies = {
    send: options.send ?? client!.send,
    clock: options.clock ?? { nowMs: () => Date.now() },
    timers: options.timers ?? systemTimers,
    random: options.random ?? { fraction: () => Math.random() },
    counters,
  };
  const machines = new Map<string, Machine>();
  for (const identity of nameMachines(options.nodes, options.zones ?? DEFAULT_ZONES)) {
    const providerId = options.providerIds?.get(identity.name);
    const known = providerId === undefined ? identity : { ...identity, providerId };
    machines.set(identity.name, createMachine(known, settings, dependencies));
  }
  for (const [name, machine] of machines) if (options.silent?.has(name) !== true) machine.beat();

  let stopped = false;

  function each(names: readonly string[], act: (machine: Machine) => void): FleetOutcome {
    const { selected, unmatched } = selectNames(names, machines.keys());
    if (unmatched.length > 0) return { kind: 'unknown', names: unmatched };
    for (const name of selected) act(machines.get(name)!);
    return { kind: 'done', names: selected };
  }

  return {
    silence: (names) => each(names, (machine) => machine.silence()),
    async sleep(names, nap) {
      const { selected, unmatched } = selectNames(names, machines.keys());
      if (unmatched.length > 0) return { kind: 'unknown', names: unmatched };
      for (const name of selected) {
        const untilMs = dependencies.clock.nowMs() + nap.seconds * 1_000;
        const answer = await dependencies.send({ ...promiseOfSilence(name, untilMs, nap.reason), urgent: true });
        if (!answeredWith(answer, 200)) return { kind: 'refused', name, why: describeAnswer(answer) };
        machines.get(name)!.silence();
        dependencies.timers.set(() => {
          if (!stopped) machines.get(name)!.beat();
        }, nap.seconds * 1_000);
      }
      return { kind: 'done', names: selected };
    },
    beat: (names) => each(names, (machine) => machine.beat()),
    list: () => [...machines.values()].map((machine) => machine.status()),
    status() {
      const all = [...machines.values()].map((machine) => machine.status());
      return {
        ...counters,
        machines: all.length,
        beating: all.filter((machine) => machine.beating).length,
        registered: all.filter((machine) => machine.registered).length,
      };
    },
    async stop() {
      stopped = true;
      for (const machine of machines.values()) machine.silence();
      client?.close();
    },
  };
}

const systemTimers: Timers = {
  set: (callback, delayMs) => startTimer(callback, delayMs),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
};
