/** Events of zones that follow from the decisions of a tick. */

import type { ClusterEvent } from '../../domain/events/cluster-event.ts';
import type { ZoneState } from '../../domain/zones/zone-state.ts';
import type { MonitorDecision } from './rule.ts';

/**
 * Zones that became disrupted, more or less so, or no longer are, by what a tick decided. `lastTickAtMs`: the last tick that
 * finished, so that a tick that takes the place of one that died tells the same ids.
 */
export function zoneTransitions(
  decisions: readonly MonitorDecision[],
  lastTickAtMs: number | undefined,
): ClusterEvent[] {
  return decisions.flatMap((decision): ClusterEvent[] => {
    const [from, to] =
      decision.kind === 'setZoneState'
        ? [decision.from, decision.to]
        : decision.kind === 'createZone'
          ? [undefined, decision.state]
          : [undefined, undefined];
    if (decision.kind !== 'setZoneState' && decision.kind !== 'createZone') return [];
    if (!isDisrupted(from) && !isDisrupted(to)) return [];
    const { zone, size: nodes, notReady } = decision;
    const type = isDisrupted(to) ? 'ZoneDisrupted' : 'ZoneRecovered';
    const state = to ?? 'Normal';
    return [{ type, id: `${type}/${zone}/${state}/${lastTickAtMs ?? 0}`, zone, state, nodes, notReady }];
  });
}

export const isDisrupted = (state: ZoneState | undefined): state is 'PartialDisruption' | 'FullDisruption' =>
  state === 'PartialDisruption' || state === 'FullDisruption';
