/** The context and the interface of every law. */
import type { Policy } from '../../shared/fleet/policy.ts';
import type { FaultName, FaultPlan } from '../faults/catalogue.ts';
import type { DoorUse } from '../heartbeat-doors.ts';
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
  | 'L13'
  | 'L14'
  | 'L15'
  | 'L16'
  | 'cidrs'
  | 'volumes'
  | 'workloads'
  | 'ticks'
  | 'flapping'
  | 'relays'
  | 'witnesses'
  | 'L17'
  | 'S1'
  | 'S2'
  | 'S3'
  | 'calm';

export interface Broken {
  readonly law: LawName;
  /** Subjects for the timeline: a node, a zone, a pod. */
  readonly subjects: readonly string[];
  readonly message: string;
  /** True: an effect was late or missing. While there is poison, this counts as a violation of L12. */
  readonly isLate?: boolean;
}

/** The true state of a machine. */
export interface TrueMachine {
  readonly zone: string;
  readonly isOn: boolean;
  /** Since when it is on, or off. */
  readonly sinceMs: number;
  /** The ways of its heartbeats. */
  readonly door: DoorUse;
  /** Its heartbeats pass through the relay of its site, while that works. */
  readonly isRelayed: boolean;
  /** When a network partition last separated it from the API; of a cut of its own link, the end. */
  readonly lastCutMs: number;
  readonly instance: 'none' | 'lives' | 'ended';
  readonly instanceEndedAtMs: number;
}

export interface LawContext {
  readonly truth: Truth;
  readonly plan: FaultPlan;
  nowMs(): number;
  /** The largest and smallest value over all policies that a process may use now. */
  most(of: (policy: Policy) => number): number;
  least(of: (policy: Policy) => number): number;
  /**
   * No fault, and ticks in every period, since then; undefined while there is a fault, or one has just ended, or its
   * effect on the ticks has not.
   */
  calmSinceMs(): number | undefined;
  /** Maximum skew between clocks plus the steps of all clocks since a moment; `steps`: only the steps. Milliseconds. */
  clockSlackMs(sinceMs: number, of?: 'steps'): number;
  machine(name: string): TrueMachine | undefined;
  /** Whether the last mark of the node came before the end of its grace period. Law `witnesses` then checks it. */
  isWitnessed(name: string): boolean;
  /** Whether objects of this node are bad. Its own effects may be late, those of other nodes may not. */
  isPoisoned(name: string): boolean;
  /** Time that L12 adds to the limit of an effect: one period while there is poison, else 0. Milliseconds. */
  poisonSlackMs(): number;
  fail(broken: Broken): void;
}

export interface Law {
  readonly name: LawName;
  /** Called after each step that wrote something, in order. */
  onHappened?(happened: Happened, by: Writer): void;
  /** Called after steps, to find effects that are overdue. */
  onMoment?(): void;
}

/** Maximum time from a decision to its effect without faults. Milliseconds. */
export const EFFECT_MS = 1_500;
/** The same while calls take seconds. */
export const SLOW_EFFECT_MS = 20_000;
/** The same while processes freeze: two of its calls. */
const FROZEN_EFFECT_MS = 60_000;

/** Maximum time from a decision to its effect, by the faults since `sinceMs`. Milliseconds. */
export function effectMs({ plan, nowMs }: LawContext, sinceMs = nowMs()): number {
  const wasOn = (name: FaultName, effectMs: number): boolean => {
    const episode = plan.last(name);
    return episode !== undefined && sinceMs < episode.untilMs + effectMs;
  };
  if (wasOn('freeze', FROZEN_EFFECT_MS)) return FROZEN_EFFECT_MS;
  return wasOn('slowStore', SLOW_EFFECT_MS) ? SLOW_EFFECT_MS : EFFECT_MS;
}

export const seconds = (milliseconds: number): string => `${Math.round(milliseconds) / 1_000} s`;
