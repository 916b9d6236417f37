/**
 * Machines that send no heartbeat for a time: a slow link, a restart, a crash. If the Node was marked meanwhile, the
 * machine registers again when it returns. Some machines of a mixed fleet then need a while until they are Ready.
 */
import type { VirtualTime } from '../virtual-time.ts';
import type { FleetTables } from './fleet-tables.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { LongLaws } from './long-laws.ts';

/** Mean number of silences per node and hour. */
const SILENCES_A_NODE_HOUR = 0.06;
/**
 * Their lengths in seconds, for a grace period of 40 s. They are as many times longer as the grace period is. The first
 * kind leaves a heartbeat at least every (grace - period) seconds, so L1 holds for it. The second ends around the mark.
 * The third is found.
 */
const KINDS = [
  { share: 0.4, least: 5, most: 24 },
  { share: 0.2, least: 24, most: 60 },
  { share: 0.4, least: 120, most: 600 },
] as const;
const GRACE_SECONDS = 40;

/** A machine stays without another silence for so many of the longest grace periods: its heartbeats are known then. */
const APART_GRACES = 1.5;
/** From the mark of a machine that sends heartbeats until it registers again. Milliseconds. */
const REGISTERS_AFTER_MS = 5_000;
/** Share of new registrations in a mixed fleet without a Ready condition. The first status comes later, or too late. */
const STARTING_SHARE = 0.25;
const STARTS_IN_MIN = 0.2;
const STARTS_IN_MAX = 1.6;

export interface Silences {
  /** A node was marked. If its machine sends heartbeats, it registers again soon. */
  onMarked(node: number): void;
  /** It is silent, or was a short time ago. */
  isBusy(node: number): boolean;
  /** Makes a machine silent that is not busy. Resolves when it sends its next heartbeat. */
  silence(node: number, forMs: number): Promise<void>;
}

/** The times of the profile of a machine. Seconds. */
interface KindTimes {
  readonly graceSeconds: number;
  readonly startupSeconds: number;
}

export function runSilences(options: {
  readonly time: VirtualTime;
  readonly random: (purpose: string) => () => number;
  readonly nodes: number;
  readonly heartbeats: Heartbeats;
  readonly tables: FleetTables;
  readonly laws: LongLaws;
  readonly timesOf: (node: number) => KindTimes;
  /** The longest grace period of all machines. */
  readonly longestGraceMs: number;
  readonly isMixed: boolean;
}): Silences {
  const { time, random, nodes, heartbeats, tables, laws, timesOf, longestGraceMs, isMixed } = options;
  const fraction = random('silences');
  const starts = random('starts');
  const busy = new Set<number>();
  const meanMs = 3_600_000 / (SILENCES_A_NODE_HOUR * nodes);

  function lengthMs(): number {
    let draw = fraction();
    const kind = KINDS.find(({ share }) => {
      draw -= share;
      return draw < 0;
    });
    const { least, most } = kind ?? KINDS[2];
    return 1_000 * (least + fraction() * (most - least));
  }

  function begin(): void {
    time.after(-Math.log(1 - fraction()) * meanMs, begin);
    const node = Math.floor(fraction() * nodes);
    const forMs = lengthMs() * (timesOf(node).graceSeconds / GRACE_SECONDS);
    if (!busy.has(node)) void silence(node, forMs);
  }

  async function silence(node: number, forMs: number): Promise<void> {
    busy.add(node);
    heartbeats.silence(node, time.nowMs(), time.nowMs() + forMs);
    laws.onSilence(node);
    await time.sleep(forMs);
    laws.onReturn(node);
    void returnedToFleet(node);
  }

  async function returnedToFleet(node: number): Promise<void> {
    if (isMixed && tables.isMarked(node) && starts() < STARTING_SHARE) await start(node);
    else await registerAgain(node);
    time.after(APART_GRACES * longestGraceMs, () => busy.delete(node));
  }

  async function registerAgain(node: number): Promise<void> {
    if (tables.isMarked(node)) await tables.replace(node);
  }

  /** Registers without a Ready condition and without heartbeats, until the first status. */
  async function start(node: number): Promise<void> {
    const startupMs = 1_000 * timesOf(node).startupSeconds;
    const forMs = startupMs * (STARTS_IN_MIN + starts() * (STARTS_IN_MAX - STARTS_IN_MIN));
    await tables.replace(node, { isReady: false });
    heartbeats.silence(node, time.nowMs(), time.nowMs() + forMs);
    laws.onStarting(node);
    await time.sleep(forMs);
    laws.onReturn(node);
    if (tables.isMarked(node)) await tables.replace(node);
    else await tables.postReady(node);
  }

  time.after(meanMs, begin);
  return {
    onMarked(node) {
      if (heartbeats.isSilent(node, time.nowMs())) return;
      time.after(REGISTERS_AFTER_MS, () => void registerAgain(node));
    },
    isBusy: (node) => busy.has(node),
    silence,
  };
}
