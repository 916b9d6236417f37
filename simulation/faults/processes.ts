/**
 * The functions as their platform runs them: each invocation has a process to itself; a process that is free serves the next
 * one warm, and where none is free a cold one begins. A process has its own clock, its own policy (from when it began) and
 * nothing in memory that another could see. One that is killed stops at a call: nothing it waited for ever continues.
 */
import type { FleetControllers } from '../../shared/controllers/index.ts';
import type { Policy } from '../../shared/domain/policy.ts';
import type { FunctionName } from '../../shared/function-list.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Endpoint } from '../endpoint.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';

/** Milliseconds either way. */
const SKEW_MAX_MS = 1_000;
/** Calls within which a process that is to be killed dies. */
const CALLS_TO_LIVE_MAX = 60;
const KILL_SHARE = 0.25;

export interface Process {
  readonly id: number;
  readonly name: FunctionName;
  readonly policy: Policy;
  readonly clock: Clock;
  /** Who is served: a machine, the operator, the probe; '' for a tick or a stream. */
  readonly who: string;
  isDead(): boolean;
  /** Before each external call: whether it is the last one, and if so whether it is still sent. */
  beforeCall(): 'before' | 'after' | undefined;
}

export interface Program {
  readonly clock: Clock;
  readonly controllers: FleetControllers;
  readonly endpoint: Endpoint;
}

export type Invocation<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'killed' };

export interface Functions<P = Program> {
  invoke<T>(name: FunctionName, who: string, run: (program: P) => Promise<T>): Promise<Invocation<T>>;
  /** All warm processes go; those that are busy end with what they do. */
  restart(): void;
  /** Clocks of all processes are ahead of true time by so much, besides their own skew. */
  clockAheadMs: number;
  /** Sets another skew of the clock of one process, within its bounds. */
  stepOneClock(): void;
  /** What processes that begin from now on read. */
  policy: Policy;
  /** Policies of processes that may still run. */
  policies(): readonly Policy[];
  readonly coldStarts: number;
}

interface Running<P> extends Process {
  skewMs: number;
  dead: boolean;
  callsLeft: number;
  lastCallGoesOut: boolean;
  who: string;
  isRetired: boolean;
  onDeath: (() => void) | undefined;
  readonly program: P;
}

export function lambdaFunctions<P = Program>(options: {
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly policy: Policy;
  readonly compose: (process: Process) => P;
}): Functions<P> {
  const { time, plan, fraction, compose } = options;
  const idle = new Map<FunctionName, Running<P>[]>();
  const alive = new Set<Running<P>>();
  let begun = 0;

  const skew = (): number => (plan.has('skew') ? (2 * fraction() - 1) * SKEW_MAX_MS : 0);

  function begin(name: FunctionName): Running<P> {
    begun += 1;
    if (plan.has('skew')) plan.count('skew');
    const process: Omit<Running<P>, 'program'> = {
      id: begun,
      name,
      policy: functions.policy,
      clock: { nowMs: () => Math.round(time.nowMs() + functions.clockAheadMs + process.skewMs) },
      who: '',
      skewMs: skew(),
      dead: false,
      callsLeft: Number.POSITIVE_INFINITY,
      lastCallGoesOut: false,
      isRetired: false,
      onDeath: undefined,
      isDead: () => process.dead,
      beforeCall() {
        process.callsLeft -= 1;
        if (process.callsLeft > 0) return undefined;
        process.dead = true;
        process.onDeath?.();
        return process.lastCallGoesOut ? 'after' : 'before';
      },
    };
    const whole = Object.assign(process, { program: compose(process) });
    alive.add(whole);
    return whole;
  }

  const functions: Functions<P> = {
    policy: options.policy,
    clockAheadMs: 0,
    get coldStarts() {
      return begun;
    },
    async invoke<T>(name: FunctionName, who: string, run: (program: P) => Promise<T>): Promise<Invocation<T>> {
      const free = idle.get(name) ?? [];
      idle.set(name, free);
      const process = free.pop() ?? begin(name);
      process.who = who;
      process.callsLeft = Number.POSITIVE_INFINITY;
      if (plan.strikes('kill', KILL_SHARE)) {
        process.callsLeft = 1 + Math.floor(plan.fraction('kill') ** 2 * CALLS_TO_LIVE_MAX);
        process.lastCallGoesOut = plan.fraction('kill') < 0.5;
      }
      const ended = new Promise<Invocation<T>>((resolve) => {
        process.onDeath = () => resolve({ kind: 'killed' });
        run(process.program).then(
          (value) => resolve({ kind: 'done', value }),
          (error: unknown) => resolve({ kind: 'failed', error }),
        );
      });
      const answer = await ended;
      if (process.dead || process.isRetired) alive.delete(process);
      else free.push(process);
      return answer;
    },
    restart() {
      for (const process of alive) process.isRetired = true;
      for (const [name, free] of idle) {
        for (const process of free) alive.delete(process);
        idle.set(name, []);
      }
    },
    stepOneClock() {
      const all = [...alive];
      const process = all[Math.floor(fraction() * all.length)];
      if (process !== undefined) process.skewMs = skew();
    },
    policies: () => [...new Set([functions.policy, ...[...alive].map(({ policy }) => policy)])],
  };
  return functions;
}
