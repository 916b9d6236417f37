/** Seeds that once broke a law, and seeds without any fault. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FAULT_NAMES, type FaultName, RELAY_FAULTS } from '../../simulation/faults/catalogue.ts';
import type { LawName } from '../../simulation/laws/law.ts';
import { PART_NAMES, type PartName } from '../../simulation/parts.ts';
import { runSim } from '../../simulation/run-sim.ts';

interface FailedSeed {
  readonly seed: number;
  readonly hours: number;
  readonly nodes?: number;
  readonly faults?: readonly FaultName[];
  readonly faultsAStorm?: number;
  /** Those it had: which ones a seed has may change. */
  readonly parts: readonly PartName[];
  /** The law that was broken, and by what. */
  readonly law: LawName;
  readonly was: string;
}

const FAILED_SEEDS = JSON.parse(
  readFileSync(new URL('failed-seeds.json', import.meta.url), 'utf8'),
) as readonly FailedSeed[];
/** Those that there were when the failed seeds were found. */
const NEWER_FAULTS: readonly FaultName[] = [
  'poison',
  'lyingClocks',
  'freeze',
  'throttledInvocation',
  'urlOutage',
  'costlyRequests',
  'heldChunks',
  ...RELAY_FAULTS,
];
const OLDER_FAULTS = FAULT_NAMES.filter((name) => !NEWER_FAULTS.includes(name));
/** They need more time than all others. */
const COSTLY_PARTS: ReadonlySet<PartName> = new Set(['workloads', 'scheduling', 'offlineStop']);
const TIMEOUT_MS = 600_000;

it.each(FAILED_SEEDS)(
  'the laws hold where they once did not: $law, seed $seed, $was',
  { timeout: TIMEOUT_MS },
  async (failed) => {
    const { law: _, was: __, ...options } = failed;
    expect((await runSim({ faults: OLDER_FAULTS, ...options })).failure).toBeUndefined();
  },
);

it.each([
  { seed: 11, hours: 0.5, parts: PART_NAMES.filter((name) => !COSTLY_PARTS.has(name)) },
  { seed: 12, hours: 0.25, parts: PART_NAMES },
])('the laws hold to the millisecond without any fault (seed $seed)', { timeout: TIMEOUT_MS }, async (options) => {
  expect((await runSim({ ...options, faults: [] })).failure).toBeUndefined();
});
