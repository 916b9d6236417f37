/**
 * The queue of node-marker, and the faults of its messages: lost, late, doubled, delivered to two processes at once. A
 * message of a killed process is delivered again after the visibility timeout. All numbers are its own.
 */
import type { PartQueue } from '../../shared/fleet/mark-parts.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import { callOf } from './faulty-ticks.ts';
import type { Functions, Process } from './processes.ts';

/** From the call to the delivery. Milliseconds. */
const DELIVERED_MAX_MS = 250;
const LATE_MAX_MS = 70_000;
const TWICE_AFTER_MAX_MS = 8_000;
/** The visibility time of the queue and of its receives (cdk/lib/part-queue.ts). */
const VISIBILITY_MS = 30_000;
const RECEIVES_MAX = 6;
/** Time limit of an invocation. Milliseconds. */
const BUDGET_MS = 13_000;

const MARKER = 'node-marker';

export interface FaultyParts {
  /** The queue as one process uses it. */
  queueOf(process: Process): PartQueue;
  start(functions: Functions): void;
}

export function faultyParts(options: {
  readonly time: VirtualTime;
  /** With strikes of its own. */
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly onFault: (name: typeof MARKER, faults: readonly unknown[]) => void;
  /** done, expired, gate, repeated: the marks of coverage.ts begin with `part:`. */
  readonly onPart: (outcome: string) => void;
}): FaultyParts {
  const { time, plan, fraction, onFault, onPart } = options;
  let functions: Functions | undefined;

  function deliver(body: string): void {
    if (plan.strikes('lostTicks', 0.3)) return;
    const lateMs = plan.strikes('lateTicks', 0.7) ? plan.fraction('lateTicks') * LATE_MAX_MS : 0;
    const totalMs = fraction() * DELIVERED_MAX_MS + lateMs;
    const receiveUnlessOut = (): void => {
      if (plan.severity('tickOutage') === 0) void receive(body, 1);
    };
    time.after(totalMs, receiveUnlessOut);
    if (plan.strikes('twice', 0.6)) time.after(totalMs + plan.fraction('twice') * TWICE_AFTER_MAX_MS, receiveUnlessOut);
    if (plan.strikes('atOnce', 0.6)) time.after(totalMs, receiveUnlessOut);
  }

  async function receive(body: string, receives: number): Promise<void> {
    const beganAtMs = time.nowMs();
    const again = (afterMs: number): void => {
      if (receives >= RECEIVES_MAX) return;
      onPart('repeated');
      time.after(afterMs, () => void receive(body, receives + 1));
    };
    const invocation = await functions!.invoke(MARKER, '', ({ controllers }) =>
      controllers.onMarkPart({ body, receives, budgetMs: BUDGET_MS }),
    );
    if (invocation.kind !== 'done') {
      if (invocation.kind === 'failed') onFault(MARKER, [invocation.error]);
      return again(Math.max(0, VISIBILITY_MS - (time.nowMs() - beganAtMs)));
    }
    const outcome = invocation.value;
    if (outcome.kind === 'done') return onPart('done');
    if (outcome.kind === 'dropped') return onPart(outcome.reason);
    if (outcome.kind === 'malformed') return onFault(MARKER, [new Error(`a malformed part: ${body}`)]);
    onFault(MARKER, outcome.faults);
    if (outcome.retrySeconds !== undefined) again(outcome.retrySeconds * 1_000);
  }

  return {
    queueOf: (process) => ({
      async send(bodies) {
        await callOf(process, () => {
          for (const body of bodies) deliver(body);
        });
        return [];
      },
      postpone: () => Promise.resolve(),
    }),
    start(of) {
      functions = of;
    },
  };
}
