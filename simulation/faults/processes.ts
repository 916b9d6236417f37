/**
 * The execution environments of the functions, as in Lambda. Each process serves one invocation at a time. An idle
 * process serves the next invocation (warm start); without one a new process starts (cold start). A process has its own
 * clock and the policy of its start. Processes share no memory. A killed process stops at a call, which never returns.
 */

import type { FunctionName } from '../../functions/function-list.ts';
import type { FleetControllers } from '../../server/fleet-controllers.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { Endpoint } from '../endpoint.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';

/** Maximum clock skew of a process, in both directions. Milliseconds. */
const SKEW_MAX_MS = 1_000;
/** A process that will be killed is killed at the latest at this call. */
const CALLS_BEFORE_KILL_MAX = 60;
const KILL_SHARE = 0.25;

export interface Process {
  readonly id: number;
  readonly name: FunctionName;
  readonly policy: Policy;
  readonly clock: Clock;
  /** The caller: a machine, the operator or the probe; '' for a tick or a stream. */
  readonly who: string;
  /** When its invocation began. Epoch milliseconds. */
  readonly sinceMs: number;
  /** Time that it has computed, where that takes time in a simulation. Milliseconds. */
  busyMs: number;
  isDead(): boolean;
  /** Called before each external call. `before`: killed before the call is sent. `after`: killed after it. */
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
  /** Terminates the idle processes now and the busy ones after their invocation. */
  restart(): void;
  /** By how much the clocks of all processes are ahead of true time, without their own skew. Milliseconds. */
  clockAheadMs: number;
  /** Sets another skew of the clock of one process, within its bounds. */
  stepOneClock(): void;
  /** The policy of processes that start from now on. */
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
  sinceMs: number;
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
  /**
   * Environments of a function at a time: further invocations wait for their turn, as in local mode. Undefined: as many
   * as it needs.
   */
  readonly environmentsMax?: (name: FunctionName) => number | undefined;
}): Functions<P> {
  const { time, plan, fraction, compose, environmentsMax } = options;
  const busy = new Map<FunctionName, number>();
  const waiting = new Map<FunctionName, (() => void)[]>();
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
      sinceMs: time.nowMs(),
      busyMs: 0,
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

  /** An idle process. A call that went on after the answer may have been its last one. */
  function warm(free: Running<P>[]): Running<P> | undefined {
    const process = free.pop();
    if (process?.dead !== true) return process;
    alive.delete(process);
    return warm(free);
  }

  const isFull = (name: FunctionName): boolean =>
    (busy.get(name) ?? 0) >= (environmentsMax?.(name) ?? Number.POSITIVE_INFINITY);

  /** Occupies an environment, in the order of arrival. Undefined: at once. */
  function turn(name: FunctionName): Promise<void> | undefined {
    const queue = waiting.get(name) ?? [];
    waiting.set(name, queue);
    if (queue.length > 0 || isFull(name)) return new Promise<void>((resolve) => queue.push(resolve));
    busy.set(name, (busy.get(name) ?? 0) + 1);
    return undefined;
  }

  function leave(name: FunctionName): void {
    busy.set(name, (busy.get(name) ?? 0) - 1);
    const queue = waiting.get(name) ?? [];
    while (queue.length > 0 && !isFull(name)) {
      busy.set(name, (busy.get(name) ?? 0) + 1);
      queue.shift()?.();
    }
  }

  const functions: Functions<P> = {
    policy: options.policy,
    clockAheadMs: 0,
    get coldStarts() {
      return begun;
    },
    async invoke<T>(name: FunctionName, who: string, run: (program: P) => Promise<T>): Promise<Invocation<T>> {
      const itsTurn = turn(name);
      if (itsTurn !== undefined) await itsTurn;
      const free = idle.get(name) ?? [];
      idle.set(name, free);
      const process = warm(free) ?? begin(name);
      process.who = who;
      process.sinceMs = time.nowMs();
      process.callsLeft = Number.POSITIVE_INFINITY;
      if (plan.strikes('kill', KILL_SHARE)) {
        process.callsLeft = 1 + Math.floor(plan.fraction('kill') ** 2 * CALLS_BEFORE_KILL_MAX);
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
      leave(name);
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
