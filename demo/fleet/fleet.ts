/** A fleet of simulated machines in one process, against any Kubernetes API. */
import { setTimeout as startTimer } from 'node:timers';
import { answeredWith, describeAnswer } from '../../agent/rules/kube-answer.ts';
import { leaseDurationSeconds, nodePath, renewIntervalMs } from '../../agent/rules/lease.ts';
import { promiseOfSilence } from '../../agent/rules/planned-silence.ts';
import { isRelayUsable } from '../../agent/rules/relay-use.ts';
import type { Clock, RandomSource } from '../../shared/clock.ts';
import { createApiClient, type SendRequest } from './api-client.ts';
import { createMachine, type Machine, type MachineStatus, type Timers } from './machine.ts';
import type { FleetCounters, MachineSettings } from './machine-state.ts';
import { type MachineIdentity, nameMachines, selectNames } from './names.ts';
import { ZoneRelay } from './relay.ts';

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

export interface Swing {
  /** Number of silences. */
  readonly times: number;
  /** Duration of each silence. Whole seconds. */
  readonly seconds: number;
}

export type RequestOutcome =
  | FleetOutcome
  /** The API refused the request of this machine, or could not be reached; or this zone has no relay. */
  | { readonly kind: 'refused'; readonly name: string; readonly why: string };

/** `start`: its machines use a relay from now on. `kill`: the relay dies. `remove`: they do not use one any more. */
export type RelayAction = 'start' | 'kill' | 'remove';

export interface ListedMachine extends MachineStatus {
  /** How its next heartbeat is sent. */
  readonly way: 'direct' | 'relay';
}

export interface Fleet {
  /** Stops these machines at once, as a power cut does. `names`: globs. */
  silence(names: readonly string[]): FleetOutcome;
  /**
   * Announces a silence on the Node of each machine, as `nodekeeper-agent sleep` does, and silences those for which the
   * API accepted it. Each beats again at the promised end. `names`: globs.
   */
  sleep(names: readonly string[], nap: Nap): Promise<RequestOutcome>;
  /**
   * Silences these machines again and again, as a bad link does. Between two silences a machine beats for 20 s. Another
   * command that starts or stops the machine cancels it. `names`: globs.
   */
  flap(names: readonly string[], swing: Swing): FleetOutcome;
  /** Sets a label of the Node of each machine, such as one that selects a profile. `names`: globs. */
  label(names: readonly string[], label: { readonly key: string; readonly value: string }): Promise<RequestOutcome>;
  /** Starts these machines. A missing Node is registered again. `names`: globs. */
  beat(names: readonly string[]): FleetOutcome;
  /** The relay of each of these zones. `zones`: globs. A relay is created by its first start. */
  relay(zones: readonly string[], action: RelayAction): RequestOutcome;
  list(): ListedMachine[];
  status(): FleetStatus;
  /** Stops all machines and closes the connections. Nodes and Leases are not changed. */
  stop(): Promise<void>;
}

/** nodeStatusUpdateFrequency of a kubelet. */
const LOOK_INTERVAL_SECONDS_MIN = 10;
const LOOKS_PER_SECOND_MAX = 10;
/** A machine that flaps beats for so long between two silences. */
const BEATS_BETWEEN_MS = 20_000;

export const DEFAULT_ZONES = ['local-a', 'local-b', 'local-c'] as const;
export const DEFAULT_REGION = 'local';

/**
 * Starts the machines, and does not wait for their registration (see status()). They register in the order of names.
 */
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
  const relays = new Map<string, ZoneRelay>();
  /** Undefined also while the machine's interval is too short for a relay (agent/rules/relay-use.ts). */
  const relayOf = ({ name, zone }: MachineIdentity): ZoneRelay | undefined =>
    isRelayUsable(machines.get(name)!.status().beatEverySeconds * 1_000) ? relays.get(zone) : undefined;
  for (const identity of nameMachines(options.nodes, options.zones ?? DEFAULT_ZONES)) {
    const providerId = options.providerIds?.get(identity.name);
    const known = providerId === undefined ? identity : { ...identity, providerId };
    const send: SendRequest = (request) => (relayOf(identity) ?? dependencies).send(request);
    machines.set(identity.name, createMachine(known, settings, { ...dependencies, send }));
  }
  for (const [name, machine] of machines) if (options.silent?.has(name) !== true) machine.beat();

  let stopped = false;
  /** Number of commands per machine that start or stop it: such a command cancels what an earlier one planned. */
  const commands = new Map<string, number>();

  function each(names: readonly string[], act: (machine: Machine) => void): FleetOutcome {
    const { selected, unmatched } = selectNames(names, machines.keys());
    if (unmatched.length > 0) return { kind: 'unknown', names: unmatched };
    for (const name of selected) {
      commands.set(name, (commands.get(name) ?? 0) + 1);
      act(machines.get(name)!);
    }
    return { kind: 'done', names: selected };
  }

  /** Sends a request for each machine, and continues with those for which the API accepted it. */
  async function request(
    names: readonly string[],
    requestOf: (name: string) => Parameters<SendRequest>[0],
    accepted?: (machine: Machine) => void,
  ): Promise<RequestOutcome> {
    const { selected, unmatched } = selectNames(names, machines.keys());
    if (unmatched.length > 0) return { kind: 'unknown', names: unmatched };
    for (const name of selected) {
      const answer = await dependencies.send(requestOf(name));
      if (!answeredWith(answer, 200)) return { kind: 'refused', name, why: describeAnswer(answer) };
      if (accepted !== undefined) each([name], accepted);
    }
    return { kind: 'done', names: selected };
  }

  /** Does this later, unless the machine was started or stopped by another command. */
  function after({ identity: { name } }: Machine, delayMs: number, act: () => void): void {
    const command = commands.get(name);
    dependencies.timers.set(() => {
      if (!stopped && commands.get(name) === command) act();
    }, delayMs);
  }

  function flapOn(machine: Machine, { times, seconds }: Swing): void {
    machine.silence();
    after(machine, seconds * 1_000, () => {
      machine.beat();
      if (times > 1) after(machine, BEATS_BETWEEN_MS, () => flapOn(machine, { times: times - 1, seconds }));
    });
  }

  return {
    silence: (names) => each(names, (machine) => machine.silence()),
    sleep(names, { seconds, reason }) {
      const untilMs = (): number => dependencies.clock.nowMs() + seconds * 1_000;
      return request(
        names,
        (name) => ({ ...promiseOfSilence(name, untilMs(), reason), urgent: true }),
        (machine) => {
          machine.silence();
          after(machine, seconds * 1_000, () => machine.beat());
        },
      );
    },
    flap: (names, swing) => each(names, (machine) => flapOn(machine, swing)),
    label: (names, { key, value }) =>
      request(names, (name) => ({
        method: 'PATCH',
        path: nodePath(name),
        contentType: 'application/merge-patch+json',
        body: { metadata: { labels: { [key]: value } } },
        urgent: true,
      })),
    beat: (names) => each(names, (machine) => machine.beat()),
    relay(globs, action) {
      const zones = new Set([...machines.values()].map(({ identity }) => identity.zone));
      const { selected, unmatched } = selectNames(globs, zones);
      if (unmatched.length > 0) return { kind: 'unknown', names: unmatched };
      const without = selected.find((zone) => action !== 'start' && !relays.has(zone));
      if (without !== undefined) return { kind: 'refused', name: without, why: 'the zone has no relay' };
      const created = (): ZoneRelay => new ZoneRelay({ ...dependencies, token: options.token });
      for (const zone of selected) {
        const relay = relays.get(zone);
        if (action === 'start') relays.set(zone, relay ?? created());
        if (action === 'start') relay?.start();
        else relay?.kill();
        if (action === 'remove') relays.delete(zone);
      }
      return { kind: 'done', names: selected };
    },
    list: () =>
      [...machines.values()].map((machine) => {
        const isRelayed = relayOf(machine.identity)?.isUsedBy(machine.identity.name) === true;
        return { ...machine.status(), way: isRelayed ? 'relay' : 'direct' };
      }),
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
