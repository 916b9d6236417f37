/**
 * Runs one tick of a controller:
 *
 *   stale: drop it ── read ── nothing to do, or slot already claimed: done ── claim; the loser exits
 *   work within the budget ── report the faults of single objects together
 *
 * The read comes before the claim: a slot without work costs no write. Rows read before the claim may be stale, so
 * every effect carries its own condition.
 */

import type { Clock } from '../clock.ts';
import type { FleetStore } from '../fleet/zones/fleet-store.ts';
import { type WorkBudget, workUntil } from './bounded-work.ts';
import { slotVerdict } from './tick.ts';

/** Reserve at the end of a period: a tick ends before the next one begins. Milliseconds. */
export const PERIOD_RESERVE_MS = 500;

export interface Tick {
  readonly slot: number;
  /** Time limit of the caller. Milliseconds; a tick uses about one period of it. */
  readonly budgetMs?: number;
}

/** A tick that did not run. */
export type SkippedTick =
  /** Delayed by an outage of the controller; dropped without a claim. */
  | { readonly kind: 'stale' }
  /** Another tick claimed this slot, or a later one. */
  | { readonly kind: 'lost' };

/** Parts of a tick failed. All other work is done; the next tick repeats the failed parts. */
export class TickFault extends AggregateError {
  override readonly name = 'TickFault';
}

export interface RunningTick {
  readonly slot: number;
  /** Start of the tick. Epoch milliseconds. */
  readonly nowMs: number;
  /** Time for the work: to the end of the period, and at least `leastShare` of a period from now. @default 0 */
  budget(leastShare?: number): WorkBudget;
  /** Faults of single objects. The work adds to it and continues with the other objects. */
  readonly faults: unknown[];
}

export type Claim<Claimed> = { readonly kind: 'claimed'; readonly claimed: Claimed } | 'lost';

export interface TickSteps<World, Claimed, Report> {
  readonly controller: string;
  readonly periodSeconds: number;
  /** Returns the `world` to work on, or the report of a tick without work. */
  read(
    nowMs: number,
  ): Promise<{ readonly kind: 'work'; readonly world: World } | { readonly kind: 'done'; readonly report: Report }>;
  /** One conditional write. */
  claim(world: World, nowMs: number): Promise<Claim<Claimed>>;
  work(claimed: Claimed, tick: RunningTick): Promise<Report>;
}

/** @throws TickFault when single objects failed; the next tick does their work */
export async function runTick<World, Claimed, Report>(
  dependencies: { readonly clock: Clock },
  tick: Tick,
  steps: TickSteps<World, Claimed, Report>,
): Promise<Report | SkippedTick> {
  const { report, faults } = await attemptTick(dependencies, tick, steps);
  if (faults.length > 0 || report === undefined) throw tickFault(steps.controller, faults);
  return report;
}

export const tickFault = (controller: string, faults: readonly unknown[]): TickFault =>
  new TickFault([...faults], `${controller} could not finish its tick`);

export interface TickOutcome<Report> {
  /** Absent when the work as a whole failed. */
  readonly report: Report | SkippedTick | undefined;
  /** Faults of single objects. All other work is done. */
  readonly faults: readonly unknown[];
}

/** The same, for a controller that continues after the faults of single objects. It rejects when the read or claim does. */
export async function attemptTick<World, Claimed, Report>(
  { clock }: { readonly clock: Clock },
  tick: Tick,
  steps: TickSteps<World, Claimed, Report>,
): Promise<TickOutcome<Report>> {
  const { slot } = tick;
  const { periodSeconds } = steps;
  const nowMs = clock.nowMs();
  const withoutFault = (report: Report | SkippedTick): TickOutcome<Report> => ({ report, faults: [] });
  if (slotVerdict({ slot, nowMs, periodSeconds }) === 'stale') return withoutFault({ kind: 'stale' });
  const read = await steps.read(nowMs);
  if (read.kind === 'done') return withoutFault(read.report);
  const claim = await steps.claim(read.world, nowMs);
  if (claim === 'lost') return withoutFault({ kind: 'lost' });

  const periodMs = periodSeconds * 1_000;
  const budget = (leastShare = 0): WorkBudget => {
    const untilMs = Math.max(nowMs + periodMs - PERIOD_RESERVE_MS, clock.nowMs() + leastShare * periodMs);
    return workUntil(clock, Math.min(nowMs + (tick.budgetMs ?? Infinity), untilMs));
  };
  const faults: unknown[] = [];
  const report = await steps.work(claim.claimed, { slot, nowMs, budget, faults }).catch((fault: unknown) => {
    faults.push(fault);
    return undefined;
  });
  return { report, faults };
}

/** The claim of a controller that stores nothing with its slot. */
export const bareClaim =
  <World>({ fleet }: { readonly fleet: Pick<FleetStore, 'claimBare'> }, controller: string, slot: number) =>
  async (world: World, nowMs: number): Promise<Claim<World>> =>
    (await fleet.claimBare(controller, slot, nowMs)) === 'lost' ? 'lost' : { kind: 'claimed', claimed: world };
