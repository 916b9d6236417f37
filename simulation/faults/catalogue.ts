/** The faults of a simulation, by the names that `--faults` accepts, and their times. */
import { partsOf } from '../parts.ts';
import { hashOf, seededFraction } from '../seeded-random.ts';

/** What each fault is. */
export const FAULTS = {
  throttle: 'a call to the tables is throttled and has no effect',
  timeout: 'a call to the tables times out; a write may have happened or not',
  resend: 'the adapter sends a write again because its answer was lost',
  contention: 'a transaction conflicts with another one and writes nothing',
  slowStore: 'calls to the tables take up to three seconds',
  staleReads: 'eventually consistent reads show the tables as they were up to three seconds ago',
  kill: 'a process terminates at one of its calls and never continues',
  freeze: 'a process stops at one of its calls for up to 25 s and then continues',
  throttledInvocation: 'Lambda refuses invocations of functions that tick, for lack of concurrency',
  twice: 'a tick is delivered a second time',
  atOnce: 'a tick is delivered to two processes at the same moment',
  lateTicks: 'messages of ticks and wake-ups are up to 70 s late',
  lostTicks: 'single messages of ticks and wake-ups are lost',
  tickOutage: 'no message of a tick, no wake-up and no schedule is delivered',
  scheduleLate: 'schedules fire up to a minute after their minute',
  scheduleMissing: 'schedules miss minutes',
  scheduleTwice: 'schedules fire twice in a minute',
  wakeLost: 'wake-ups of functions with work are lost',
  wakeTwice: 'functions with work are woken twice',
  lateStreams: 'stream batches are up to 30 s late, differently per shard',
  duplicateBatches: 'a stream batch is delivered again',
  splitBatches: 'stream batches are split into batches of one to three records',
  restart: 'cold processes replace all warm ones',
  skew: "processes' clocks differ by up to 1 s either way",
  clockJump: 'the clocks of all processes step together by up to 30 s, or that of one within its second',
  lostBeats: "a machine's request or its answer is lost",
  lateBeats: 'a request arrives up to 15 s late, after its client has timed out',
  duplicateBeats: 'a request arrives twice',
  zoneCut: 'no request passes between one zone and the endpoint',
  siteCut: 'no request passes between any machine and the endpoint',
  apiOutage: 'the endpoint answers 503 to all clients, probes of node-monitor included',
  urlOutage: 'the URL of function heartbeat throttles all clients or does not answer, probes of node-monitor included',
  relayDown: 'the relays of all sites are killed, once or again and again',
  relayCut: 'relays cannot reach the endpoint, although their machines can',
  relayDrops: 'relays lose heartbeats, or the answers to batches',
  relayHolds: 'batches of relays arrive up to five minutes late and in another order, or a second time',
  waysHang: 'the relay of a machine and its first direct request after it hang',
  ec2Stale: 'EC2 shows its instances as they were up to 20 s ago',
  ec2Throttled: 'EC2 throttles, fails or times out',
  ec2Wrong: 'EC2 omits an instance for less than a period',
  ec2Events: 'events of instances are late, repeated or lost',
  policyRoll: 'some processes use the new policy, others still the old one',
  lyingClocks: 'times and counts that machines write are off by seconds to years, drift or jump',
  costlyRequests:
    'a machine sends dozens of costly heartbeats and API requests at a time, and functions have few environments',
  heldChunks: 'a front holds each chunk of a watch until the next one is written',
  poison: 'a few machines have objects at every limit: huge, countless, malformed, absurd or throttled',
} as const;
export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as readonly FaultName[];

/**
 * Faults of the whole run that must affect nothing, or only their own objects: no law allows for them, and no calm
 * ends.
 */
const STANDING: ReadonlySet<FaultName> = new Set(['lyingClocks', 'poison', 'heldChunks']);
/** Faults of relays. No law allows for them: machines have a second way. */
export const RELAY_FAULTS = [
  'relayDown',
  'relayCut',
  'relayDrops',
  'relayHolds',
  'waysHang',
] as const satisfies readonly FaultName[];
/** All laws hold meanwhile as in calm. */
const IN_CALM: ReadonlySet<FaultName> = new Set<FaultName>([...RELAY_FAULTS, 'costlyRequests']);
/**
 * Maximum time that a process is frozen. Below the time limit of an invocation: one that is frozen for longer is
 * killed.
 */
export const FROZEN_MAX_MS = 25_000;
/** A fault that struck at the end of its episode may have its effect for as long afterwards. Milliseconds. */
const LASTING_MS: Readonly<Partial<Record<FaultName, number>>> = { freeze: FROZEN_MAX_MS };
/** The mean is over this many faults. It stays when a fault is added: the storms of a seed then keep their faults. */
const FAULTS_IN_MEAN = 34;
/**
 * Shares of the seeds that have a fault when `--faults` does not name it. Poison keeps `calm` from being checked. The
 * others came later than most of failed-seeds.json.
 */
const SEED_SHARES: Readonly<Partial<Record<FaultName, number>>> = {
  poison: 0.35,
  freeze: 0.4,
  throttledInvocation: 0.4,
  costlyRequests: 0.2,
};

/** The faults of a seed when none are named. */
export const faultsOf = (seed: number): readonly FaultName[] =>
  FAULT_NAMES.filter((name) => {
    if (name === 'urlOutage') return partsOf(seed).includes('heartbeatUrl');
    if (RELAY_FAULTS.some((each) => each === name)) return partsOf(seed).includes('relays');
    const share = SEED_SHARES[name];
    return share === undefined || seededFraction(hashOf(`${seed} has ${name}`))() < share;
  });

/** Runs begin without faults: a fault needs a working system. */
const FIRST_STORM_MS = 90_000;
const STORM_MIN_MS = 20_000;
const STORM_MAX_MS = 180_000;
/** One storm in so many is long. */
const LONG_STORM_SHARE = 0.15;
const LONG_STORM_MAX_MS = 600_000;
const CALM_MIN_MS = 60_000;
const CALM_MAX_MS = 420_000;
/** Faults that come together in one storm, in the mean. */
const FAULTS_A_STORM = 3.5;
/** Faults that need more storms to find something to befall. */
const OFTENER: Readonly<Partial<Record<FaultName, number>>> = {
  relayDown: 4,
  relayCut: 4,
  relayDrops: 4,
  relayHolds: 6,
  waysHang: 6,
  costlyRequests: 2,
  ec2Events: 4,
  ec2Wrong: 2,
  ec2Stale: 2,
  ec2Throttled: 2,
};
/**
 * Half of the episodes of these are in the calm after a storm, when its effects have passed. Milliseconds from its end.
 */
const AFTER_STORM_MS = 30_000;
const AFTER_STORM_LASTS_MS = 15_000;
const AFTER_STORMS: ReadonlySet<FaultName> = new Set(['costlyRequests']);
/** Faults with rare episodes, which are logged one by one: outages and cuts. */
const OUTAGES: ReadonlySet<FaultName> = new Set(['tickOutage', 'zoneCut', 'siteCut', 'apiOutage', 'urlOutage']);

export interface Episode {
  readonly fromMs: number;
  readonly untilMs: number;
  /** How bad it is, 0 to 1. */
  readonly severity: number;
}

export interface FaultPlan {
  /** Asked for, at all. */
  has(name: FaultName): boolean;
  /** How bad it is at this moment, 0 to 1; 0 while it does not happen. */
  severity(name: FaultName): number;
  /** Whether it befalls this very thing, which has a share of it at the worst. Counts it when it does. */
  strikes(name: FaultName, shareAtWorst: number): boolean;
  /** A number in [0, 1) for the shape of what `strikes`. */
  fraction(name: FaultName): number;
  count(name: FaultName): void;
  readonly counts: Readonly<Record<FaultName, number>>;
  /** No fault since then, if none is going on. Those of relays and of a greedy identity do not count. */
  calmSinceMs(): number | undefined;
  /** The last episode of a fault that has begun. */
  last(name: FaultName): { readonly fromMs: number; readonly untilMs: number } | undefined;
  /** All of them, in order: for those who do something when one begins. */
  episodes(name: FaultName): readonly Episode[];
  /**
   * The same episodes and counts, but what they strike is decided by numbers of its own: it moves none of the others.
   */
  apart(whose: string): FaultPlan;
}

/**
 * Storms and calm by turns. Which faults a storm has is decided for each fault by numbers of its own: leaving one out
 * changes nothing about the others.
 */
export function faultPlan(options: {
  readonly seed: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly faults: readonly FaultName[];
  /** How many of all faults come together in one storm, in the mean. */
  readonly faultsAStorm?: number;
  readonly nowMs: () => number;
}): FaultPlan {
  const { seed, startMs, endMs, faults, nowMs } = options;
  const wanted = new Set(faults);
  const weather = seededFraction(hashOf(`${seed} weather`));
  const storms: { readonly fromMs: number; readonly untilMs: number }[] = [];
  for (let atMs = startMs + FIRST_STORM_MS; atMs < endMs; ) {
    const longestMs = weather() < LONG_STORM_SHARE ? LONG_STORM_MAX_MS : STORM_MAX_MS;
    const untilMs = Math.round(atMs + STORM_MIN_MS + weather() * (longestMs - STORM_MIN_MS));
    storms.push({ fromMs: Math.round(atMs), untilMs });
    atMs = untilMs + CALM_MIN_MS + weather() * (CALM_MAX_MS - CALM_MIN_MS);
  }
  const share = (options.faultsAStorm ?? FAULTS_A_STORM) / FAULTS_IN_MEAN;
  const episodes = new Map<FaultName, Episode[]>();
  for (const name of FAULT_NAMES) {
    const random = seededFraction(hashOf(`${seed} ${name}`));
    const own = storms.flatMap(({ fromMs, untilMs }): Episode[] => {
      const [isHit, from, length, severity] = [random() < share * (OFTENER[name] ?? 1), random(), random(), random()];
      if (!isHit || !wanted.has(name) || STANDING.has(name)) return [];
      if (AFTER_STORMS.has(name) && from < 0.5) {
        const calmMs = untilMs + AFTER_STORM_MS;
        return [{ fromMs: calmMs, untilMs: calmMs + AFTER_STORM_LASTS_MS, severity: 0.15 + 0.85 * severity }];
      }
      const begins = Math.round(fromMs + 0.5 * from * (untilMs - fromMs));
      const rest = untilMs - begins;
      const lasts = OUTAGES.has(name) ? Math.max(5_000, length * rest) : (0.5 + 0.5 * length) * rest;
      return [
        { fromMs: begins, untilMs: Math.round(begins + Math.min(rest, lasts)), severity: 0.15 + 0.85 * severity },
      ];
    });
    episodes.set(name, own);
  }
  const turmoil = merged(
    [...episodes].flatMap(([name, own]) =>
      IN_CALM.has(name)
        ? []
        : own.map((episode) => ({ ...episode, untilMs: episode.untilMs + (LASTING_MS[name] ?? 0) })),
    ),
  );
  let lastEndMs = startMs;
  const counts = Object.fromEntries(FAULT_NAMES.map((name) => [name, 0])) as Record<FaultName, number>;
  const current = new Map<FaultName, number>();

  const lastBegun = (name: FaultName): Episode | undefined => {
    const all = episodes.get(name)!;
    let index = current.get(name) ?? -1;
    while (index + 1 < all.length && all[index + 1]!.fromMs <= nowMs()) index += 1;
    current.set(name, index);
    return all[index];
  };
  const severity = (name: FaultName): number => {
    const episode = lastBegun(name);
    return episode !== undefined && nowMs() < episode.untilMs ? episode.severity : 0;
  };

  /** Separate from the episodes: a longer run begins as a shorter one does. */
  const planOf = (whose: string): FaultPlan => {
    const randoms = new Map(FAULT_NAMES.map((name) => [name, seededFraction(hashOf(`${seed} ${name} ${whose}`))]));
    return {
      has: (name) => wanted.has(name),
      severity,
      strikes(name, shareAtWorst) {
        const now = severity(name);
        if (now === 0 || randoms.get(name)!() >= now * shareAtWorst) return false;
        counts[name] += 1;
        return true;
      },
      fraction: (name) => randoms.get(name)!(),
      count: (name) => {
        counts[name] += 1;
      },
      counts,
      calmSinceMs() {
        const now = nowMs();
        while (turmoil[0] !== undefined && turmoil[0].untilMs <= now) lastEndMs = turmoil.shift()!.untilMs;
        return turmoil[0] !== undefined && turmoil[0].fromMs <= now ? undefined : lastEndMs;
      },
      last: lastBegun,
      episodes: (name) => episodes.get(name)!,
      apart: (other) => planOf(`strikes of ${other}`),
    };
  };
  return planOf('strikes');
}

/** Intervals with at least one of these faults, in order. */
function merged(episodes: readonly Episode[]): { readonly fromMs: number; readonly untilMs: number }[] {
  const stretches: { fromMs: number; untilMs: number }[] = [];
  for (const { fromMs, untilMs } of episodes.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const last = stretches.at(-1);
    if (last !== undefined && fromMs <= last.untilMs) last.untilMs = Math.max(last.untilMs, untilMs);
    else stretches.push({ fromMs, untilMs });
  }
  return stretches;
}
