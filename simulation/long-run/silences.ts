/**
 * Machines that send no heartbeat for a time: a slow link, a restart, a crash. If the Node was marked meanwhile, the
 * machine registers again when it returns.
 */
import type { VirtualTime } from '../virtual-time.ts';
import type { FleetTables } from './fleet-tables.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { LongLaws } from './long-laws.ts';

/** Mean number of silences per node and hour. */
const SILENCES_A_NODE_HOUR = 0.06;
/**
 * Their lengths in seconds. The first kind leaves a heartbeat at least every (grace - period) seconds, so L1 holds for
 * it. The second ends around the mark. The third is found.
 */
const KINDS = [
  { share: 0.4, least: 5, most: 24 },
  { share: 0.2, least: 24, most: 60 },
  { share: 0.4, least: 120, most: 600 },
] as const;

/** A machine stays without another silence for this long after one: its heartbeats in between are known. Milliseconds. */
const APART_MS = 60_000;
/** From the mark of a machine that sends heartbeats until it registers again. Milliseconds. */
const REGISTERS_AFTER_MS = 5_000;

export interface Silences {
  /** A node was marked. If its machine sends heartbeats, it registers again soon. */
  onMarked(node: number): void;
}

export function runSilences(options: {
  readonly time: VirtualTime;
  readonly random: (purpose: string) => () => number;
  readonly startMs: number;
  readonly endMs: number;
  readonly nodes: number;
  readonly heartbeats: Heartbeats;
  readonly tables: FleetTables;
  readonly laws: LongLaws;
}): Silences {
  const { time, random, nodes, heartbeats, tables, laws } = options;
  const fraction = random('silences');
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
    const forMs = lengthMs();
    if (busy.has(node)) return;
    busy.add(node);
    const nowMs = time.nowMs();
    heartbeats.silence(node, nowMs, nowMs + forMs);
    laws.onSilence(node);
    time.after(forMs, () => end(node));
  }

  async function registerAgain(node: number): Promise<void> {
    if (tables.isMarked(node)) await tables.replace(node);
  }

  function end(node: number): void {
    laws.onReturn(node);
    void registerAgain(node);
    time.after(APART_MS, () => busy.delete(node));
  }

  time.after(meanMs, begin);
  return {
    onMarked(node) {
      if (heartbeats.isSilent(node, time.nowMs())) return;
      time.after(REGISTERS_AFTER_MS, () => void registerAgain(node));
    },
  };
}
