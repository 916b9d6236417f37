/**
 * People who label a machine as another kind by mistake, and correct it after some minutes: it has a wrong profile
 * then.
 */
import type { VirtualTime } from '../virtual-time.ts';
import { KINDS, type Kind } from './mixed-fleet.ts';

/** Mean number of mistakes per node and hour. */
const MISTAKES_A_NODE_HOUR = 0.05;
const CORRECTED_MIN_MS = 5_000;
const CORRECTED_MEAN_MS = 600_000;

export function changeLabels(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly nodes: number;
  readonly kindOf: (node: number) => Kind;
  readonly relabel: (node: number, kind: Kind) => Promise<void>;
}): void {
  const { time, fraction, nodes, kindOf, relabel } = options;
  const mistaken = new Set<number>();
  const meanMs = 3_600_000 / (MISTAKES_A_NODE_HOUR * nodes);

  async function mistake(node: number): Promise<void> {
    const kind = kindOf(node);
    const others = KINDS.filter((each) => each !== kind);
    mistaken.add(node);
    await relabel(node, others[Math.floor(fraction() * others.length)]!);
    await time.sleep(CORRECTED_MIN_MS - Math.log(1 - fraction()) * CORRECTED_MEAN_MS);
    await relabel(node, kind);
    mistaken.delete(node);
  }

  function next(): void {
    time.after(-Math.log(1 - fraction()) * meanMs, next);
    const node = Math.floor(fraction() * nodes);
    if (!mistaken.has(node)) void mistake(node);
  }
  time.after(meanMs, next);
}
