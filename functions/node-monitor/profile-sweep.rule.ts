/**
 * Which Nodes are evaluated again after a change of the policy's profiles. Pure.
 *
 * The API stores the profile of a Node with each write. A change of the policy changes the profile of Nodes without a
 * write, so node-monitor evaluates all of them, a part per tick, twice:
 *
 *   change seen ── round 1, all names in order ── from two minutes after the change: round 2 ── done
 *
 * The second round finds Nodes that a process with the old policy wrote during the deployment, and those that failed in
 * the first one. Each round takes at most four minutes, so the last Node is evaluated within ten. A second round with a
 * Node that failed is repeated each minute, for an hour after the change at most.
 */
import { defined } from '../../shared/defined.ts';
import { DEPLOYED_WITHIN_MS } from '../../shared/fleet/gate.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { shortHash } from '../../shared/text.ts';

/** Progress of the evaluation (shared/fleet/fleet-store.ts). */
export interface SweepProgress {
  readonly of: string;
  readonly sinceMs: number;
  readonly round: 1 | 2 | 3;
  readonly after: string;
  /** A Node failed in this round. */
  readonly failed?: true | undefined;
  /** A repeated round begins at this time. Epoch milliseconds. */
  readonly againAtMs?: number | undefined;
}

const ROUNDS = 2;
const ROUND_SECONDS = 240;
const REPEATED_AFTER_MS = 60_000;
const REPEATED_WITHIN_MS = 3_600_000;
/** Nodes per tick at least: a small fleet is evaluated in one. */
const NODES_PER_TICK_MIN = 100;

export interface SweepPart {
  /** The Nodes to evaluate in this tick, in order. */
  readonly names: readonly string[];
  /** The progress after these Nodes. `failed`: one of them failed. */
  readonly next: (evaluated: number, failed: boolean) => SweepProgress;
}

const hashOf = (profiles: Policy['profiles']): string =>
  profiles.length === 0
    ? ''
    : shortHash(JSON.stringify(profiles.map(({ name, nodeSelector }) => [name, nodeSelector])));

/** The part of this tick; undefined when nothing is left. `stored`: undefined in a fleet that never had profiles. */
export function profileSweepPart(
  stored: SweepProgress | undefined,
  at: {
    readonly nowMs: number;
    readonly policy: Pick<Policy, 'profiles' | 'nodeMonitorPeriodSeconds'>;
    readonly nodeNames: () => readonly string[];
  },
): SweepPart | undefined {
  const { nowMs, policy } = at;
  const of = hashOf(policy.profiles);
  if ((stored?.of ?? '') === of && (stored === undefined || stored.round > ROUNDS)) return undefined;
  const sweep: SweepProgress = stored?.of === of ? stored : { of, sinceMs: nowMs, round: 1, after: '' };
  if (sweep.round === ROUNDS && nowMs < (sweep.againAtMs ?? sweep.sinceMs + DEPLOYED_WITHIN_MS)) return undefined;
  const nodeNames = at.nodeNames();
  const following = nodeNames.filter((name) => name > sweep.after).sort();
  const perTick = Math.ceil((nodeNames.length * policy.nodeMonitorPeriodSeconds) / ROUND_SECONDS);
  const names = following.slice(0, Math.max(NODES_PER_TICK_MIN, perTick));
  return {
    names,
    next(evaluated, failedNow) {
      const { failed: failedBefore, againAtMs, ...rest } = sweep;
      const failed = failedNow || failedBefore === true;
      if (evaluated < following.length) {
        const after = names[evaluated - 1] ?? sweep.after;
        return { ...rest, after, ...defined({ againAtMs, failed: failed ? (true as const) : undefined }) };
      }
      if (sweep.round === 1) return { ...rest, round: 2, after: '' };
      const isRepeated = failed && nowMs - sweep.sinceMs < REPEATED_WITHIN_MS;
      return { ...rest, after: '', ...(isRepeated ? { againAtMs: nowMs + REPEATED_AFTER_MS } : { round: 3 }) };
    },
  };
}
