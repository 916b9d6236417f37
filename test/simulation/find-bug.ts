/** Seeds that show a planted bug. */
import type { LawName } from '../../simulation/laws/law.ts';
import { runSim } from '../../simulation/run-sim.ts';
import type { SimFailure, SimOptions } from '../../simulation/sim-options.ts';

export type Plant = NonNullable<SimOptions['plant']>;

export interface PlantedBug {
  readonly bug: string;
  /** Any of them finds it. */
  readonly laws: readonly LawName[];
  /** A function, if the bug remembers what it saw: another seed begins without it. */
  readonly plant: Plant | (() => Plant);
  readonly options?: Partial<SimOptions>;
  /** The first seed that is tried: one that finds it at little cost. */
  readonly seed?: number;
}

/** Later seeds are tried if the simulation has changed. */
const SEEDS_MAX = 12;

/** How a run fails with the bug, of the first seed that fails. */
export async function findBug(
  { bug, plant, options, seed: first }: Omit<PlantedBug, 'laws'>,
  defaults: Omit<SimOptions, 'plant'>,
): Promise<SimFailure | undefined> {
  const from = first ?? defaults.seed;
  for (let seed = from; seed < from + SEEDS_MAX; seed += 1) {
    const planted = typeof plant === 'function' ? plant() : plant;
    const { failure } = await runSim({ ...defaults, ...options, seed, plant: planted });
    if (failure === undefined) continue;
    if (seed !== from) console.log(`the bug "${bug}" is found with seed ${seed}, no longer with seed ${from}`);
    return failure;
  }
  return undefined;
}
