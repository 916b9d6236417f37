/** When the agent keeps a line for sessions open, and when it tries again. */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { RunningPod } from '../ports/pod-runtime.ts';
import type { SessionOpening } from '../ports/session-api.ts';

const WAITS: Backoff = { firstMs: 1_000, limitMs: 60_000 };
/** An API that cannot upgrade connections may be replaced by one that can. Milliseconds. */
const NOT_SERVED_MS = 3_600_000;

/** There is something to connect to. */
export const needsLine = (pods: readonly RunningPod[]): boolean =>
  pods.some(({ containers, initContainers = [] }) =>
    [...containers, ...initContainers].some(({ state }) => state.kind === 'running'),
  );

/**
 * Before the next attempt. Half of it is at random, because the agents of a cluster lose their lines together.
 *
 * @param failures that preceded, without a line between
 * @param fraction in [0, 1)
 */
export function lineWaitMs(last: SessionOpening['kind'], status: number, failures: number, fraction: number): number {
  const isServed = last !== 'refused' || status === 401 || status === 429 || status >= 500;
  const waitMs = isServed ? backoffMs(WAITS, failures) : NOT_SERVED_MS;
  return Math.round(waitMs * (0.5 + fraction / 2));
}
