/**
 * One tick of a controller, the same for all of them:
 *
 *   stale? drop it ── read ── nothing to do, or the slot is taken? done ── claim; loser exits
 *   work within the budget ── report the faults of single objects together
 *
 * Reading comes before the claim, so that a slot without work costs no write. A row that was read before the claim may be old:
 * every effect carries its own condition.
 */
import { slotVerdict } from '../../domain/tick.ts';
import type { Clock } from '../../ports/clock.ts';
import type { FleetStore } from '../../store/fleet-store.ts';
import { type WorkBudget, workUntil } from './bounded-work.ts';

/** Kept free at the end of a period, so that a tick ends before the next one begins. Milliseconds. */
export const PERIOD_RESERVE_MS = 500;

export interface Tick {
  readonly slot: number;
  /** Time that the caller may run. Milliseconds; a tick uses about a period of it. */
  readonly budgetMs?: number;
}

/** A tick that did not run. */
export type SkippedTick =
  /** Delayed by an outage of ours; dropped unclaimed. */
  | { readonly kind: 'stale' }
  /** Another tick has this slot, or a later one. */
  | { readonly kind: 'lost' };

/** The tick could not do all that it began. All other work is done; the next tick does the rest. */
export class TickFault extends AggregateError {
  override readonly name = 'TickFault';
}

export interface RunningTick {
  readonly slot: number;
  /** When it began. Epoch milliseconds. */
  readonly nowMs: number;
  /** Time for the work, at least `leastShare` of a period from now on. @default 0: to the end of the period */
  budget(leastShare?: number): WorkBudget;
  /** Why single objects failed; the work adds to it and continues with the others. */
  readonly faults: unknown[];
}

export type Claim<Claimed> = { readonly kind: 'claimed'; readonly claimed: Claimed } | 'lost';

export interface TickSteps<World, Claimed, Report> {
  readonly controller: string;
  readonly periodSeconds: number;
  /** Work that may follow: `world`; otherwise the report of this tick. */
  read(
    nowMs: number,
  ): Promise<{ readonly kind: 'work'; readonly world: World } | { readonly kind: 'done'; readonly report: Report }>;
  /** One conditional write. */
  claim(world: World, nowMs: number): Promise<Claim<Claimed>>;
  work(claimed: Claimed, tick: RunningTick): Promise<Report>;
}

/** @throws TickFault when single objects failed; the next tick does their work */
export async function runTick<World, Claimed, Report>(
  { clock }: { readonly clock: Clock },
  tick: Tick,
  steps: TickSteps<World, Claimed, Report>,
): Promise<Report | SkippedTick> {
  const { slot } = tick;
  const { controller, periodSeconds } = steps;
  const nowMs = clock.nowMs();
  if (slotVerdict({ slot, nowMs, periodSeconds }) === 'stale') return { kind: 'stale' };
  const read = await steps.read(nowMs);
  if (read.kind === 'done') return read.report;
  const claim = await steps.claim(read.world, nowMs);
  if (claim === 'lost') return { kind: 'lost' };

  const periodMs = periodSeconds * 1_000;
  const budget = (leastShare = 0): WorkBudget => {
    const untilMs = Math.max(nowMs + periodMs - PERIOD_RESERVE_MS, clock.nowMs() + leastShare * periodMs);
    return workUntil(clock, Math.min(nowMs + (tick.budgetMs ?? Infinity), untilMs));
  };
  const faults: unknown[] = [];
  const report = await steps.work(claim.claimed, { slot, nowMs, budget, faults });
  if (faults.length > 0) throw new TickFault(faults, `${controller} could not finish its tick`);
  return report;
}

/** The claim of a controller whose slot carries nothing else. */
export const bareClaim =
  <World>({ fleet }: { readonly fleet: Pick<FleetStore, 'claimBare'> }, controller: string, slot: number) =>
  async (world: World, nowMs: number): Promise<Claim<World>> =>
    (await fleet.claimBare(controller, slot, nowMs)) === 'lost' ? 'lost' : { kind: 'claimed', claimed: world };
