/**
 * Which Nodes are evaluated again after a change of the policy's profiles. Pure.
 *
 * The API stores the profile of a Node with each write. A change of the policy changes the profile of Nodes without a
 * write, so node-monitor evaluates all of them, a part per tick, twice:
 *
 *   change seen ── round 1, all names in order ── from two minutes after the change: round 2 ── done
 *
 * The second round finds Nodes that a process with the old policy wrote during the deployment, and those that failed in
 * the first one. Each round takes at most four minutes, so the last Node is evaluated within ten.
 */
import type { Policy } from '../../domain/policy.ts';
import { shortHash } from '../../domain/text-hash.ts';
import { DEPLOYED_WITHIN_MS } from '../../domain/zones/gate.ts';

/** Progress of the evaluation (store/fleet-store.ts). */
export interface SweepProgress {
  readonly of: string;
  readonly sinceMs: number;
  readonly round: 1 | 2 | 3;
  readonly after: string;
}

const ROUNDS = 2;
const ROUND_SECONDS = 240;
/** Nodes per tick at least: a small fleet is evaluated in one. */
const NODES_PER_TICK_MIN = 100;

export interface SweepPart {
  /** The Nodes to evaluate in this tick, in order. */
  readonly names: readonly string[];
  /** The progress after these Nodes. */
  readonly next: (evaluated: number) => SweepProgress;
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
  if (sweep.round === ROUNDS && nowMs - sweep.sinceMs < DEPLOYED_WITHIN_MS) return undefined;
  const nodeNames = at.nodeNames();
  const following = nodeNames.filter((name) => name > sweep.after).sort();
  const perTick = Math.ceil((nodeNames.length * policy.nodeMonitorPeriodSeconds) / ROUND_SECONDS);
  const names = following.slice(0, Math.max(NODES_PER_TICK_MIN, perTick));
  return {
    names,
    next: (evaluated) =>
      evaluated >= following.length
        ? { ...sweep, round: sweep.round === 1 ? 2 : 3, after: '' }
        : { ...sweep, after: names[evaluated - 1] ?? sweep.after },
  };
}
