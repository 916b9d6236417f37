/** L10: a second evaluation after the decisions were applied decides nothing, and the order of nodes has no effect. */

import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { decideMonitor } from '../../shared/fleet/marks.rule.ts';
import { scanHealth } from '../../shared/fleet/nodes/health-store.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { MemoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { Mark } from '../coverage.ts';
import type { Broken } from './law.ts';

/**
 * Called when node-monitor has just finished a tick and nothing else runs. Evaluates again at the time of that tick.
 */
export async function decidesNothingTwice(
  tables: MemoryItemStore,
  policy: Policy,
  fraction: () => number,
  hit: (mark: Mark) => void,
  isPoisoned: (name: string) => boolean,
): Promise<Broken | undefined> {
  const { state, zones, queue } = await fleetStore(tables).read();
  const { lastTickAtMs } = state.gate;
  if (lastTickAtMs === undefined) return undefined;
  const nodes = await scanHealth(tables, { consistent: true });
  // By the heartbeats until then: a later heartbeat may change a decision.
  const world = { nodes, zones, queue, disruption: state.disruption, gate: state.gate };
  const shuffled = <T>(things: readonly T[]): readonly T[] =>
    things
      .map((thing) => ({ thing, at: fraction() }))
      .sort((one, other) => one.at - other.at)
      .map(({ thing }) => thing);
  // Nothing is decided now. The order matters where much is decided: without heartbeats until a later moment.
  const laterMs = lastTickAtMs + Math.round(2 * fraction() * policy.nodeMonitorGracePeriodSeconds * 1_000);
  const later = { ...world, gate: { ...state.gate, lastTickAtMs: laterMs } };
  const inOrder = decideMonitor(later, { nowMs: laterMs, policy });
  const another = { ...later, nodes: shuffled(nodes), zones: shuffled(zones), queue: shuffled(queue) };
  const outOfOrder = decideMonitor(another, { nowMs: laterMs, policy });
  if (inOrder.decisions.length > 1) hit('decide:in-any-order');
  if (JSON.stringify(outOfOrder.decisions) !== JSON.stringify(inOrder.decisions)) {
    return { law: 'L10', subjects: [], message: 'the order in which nodes were read changes what is decided' };
  }
  // A decision about a Node of a poisoned machine may be made again, because it may not have been applied.
  const first = decideMonitor(world, { nowMs: lastTickAtMs, policy }).decisions.find(
    (decision) => !('nodeName' in decision && isPoisoned(decision.nodeName)),
  );
  if (first === undefined) return undefined;
  const name = 'nodeName' in first ? first.nodeName : 'zone' in first ? first.zone : '';
  return { law: 'L10', subjects: [name], message: `decided again on the applied world: ${JSON.stringify(first)}` };
}
