/** The context and the interface of every law. */
import type { Policy } from '../../shared/domain/policy.ts';
import type { FaultPlan } from '../faults/catalogue.ts';
import type { Happened, Truth, Writer } from './truth.ts';

export type LawName =
  | 'L1'
  | 'L2'
  | 'L3'
  | 'L4'
  | 'L5'
  | 'L6'
  | 'L7'
  | 'L8'
  | 'L9'
  | 'L10'
  | 'L11'
  | 'L12'
  | 'cidrs'
  | 'volumes'
  | 'ticks'
  | 'calm';

export interface Broken {
  readonly law: LawName;
  /** Subjects for the timeline: a node, a zone, a pod. */
  readonly subjects: readonly string[];
  readonly message: string;
  /** Something came too late or not at all: while there is poison, that is L12. */
  readonly isLate?: boolean;
}

/** A machine as it really is. */
export interface TrueMachine {
  readonly zone: string;
  readonly isOn: boolean;
  /** Since when it is on, or off. */
  readonly sinceMs: number;
  /** When a cut between it and the endpoint last went on. */
  readonly lastCutMs: number;
  readonly instance: 'none' | 'lives' | 'ended';
  readonly instanceEndedAtMs: number;
}

export interface LawContext {
  readonly truth: Truth;
  readonly plan: FaultPlan;
  nowMs(): number;
  /** Every policy that a process may use now. The stricter end counts. */
  most(of: (policy: Policy) => number): number;
  least(of: (policy: Policy) => number): number;
  /**
   * No fault, and ticks in every period, since then; undefined while there is a fault, or one has just ended, or its
   * effect on the ticks has not.
   */
  calmSinceMs(): number | undefined;
  /** What clocks may differ by, and steps of all clocks since a moment. Milliseconds. */
  clockSlackMs(sinceMs: number, of?: 'steps'): number;
  machine(name: string): TrueMachine | undefined;
  /** Its own objects are bad: it may be late, other nodes not. */
  isPoisoned(name: string): boolean;
  /** What L12 adds to the time of an effect: a period while there is poison, else nothing. Milliseconds. */
  poisonSlackMs(): number;
  fail(broken: Broken): void;
}

export interface Law {
  readonly name: LawName;
  /** After each step that wrote something; in order. */
  onHappened?(happened: Happened, by: Writer): void;
  /** After steps: for what must have happened until now. */
  onMoment?(): void;
}

/** From a decision to its effect, with nothing in the way. Milliseconds. */
export const EFFECT_MS = 1_500;
/** The same while calls take seconds. */
export const SLOW_EFFECT_MS = 20_000;

/** How late an effect may be of what was decided by the clock a moment before: now, or at any time since a moment. */
export function effectMs({ plan, nowMs }: LawContext, sinceMs = nowMs()): number {
  const slow = plan.last('slowStore');
  return slow !== undefined && sinceMs < slow.untilMs + SLOW_EFFECT_MS ? SLOW_EFFECT_MS : EFFECT_MS;
}

export const seconds = (milliseconds: number): string => `${Math.round(milliseconds) / 1_000} s`;
