/** Events of zones that follow from the decisions of a tick. */

import type { ClusterEvent } from '../../shared/events/cluster-event.ts';
import { totalDisruption, zoneChanged } from '../../shared/events/event-text.ts';
import type { PendingEvent } from '../../shared/events/record-event.ts';
import type { MonitorDecision } from '../../shared/fleet/marks.rule.ts';
import type { ZoneState } from '../../shared/fleet/zone-state.ts';
import { CLUSTER_SUBJECT } from '../../shared/kinds/cluster-statuses/resource.ts';

/**
 * Zones that became disrupted, changed the degree of disruption, or recovered. `lastTickAtMs`: the last finished tick.
 * It is part of the event id: a tick that replaces a dead one publishes the same ids.
 */
export function zoneTransitions(
  decisions: readonly MonitorDecision[],
  lastTickAtMs: number | undefined,
): ClusterEvent[] {
  return decisions.flatMap((decision): ClusterEvent[] => {
    if (decision.kind !== 'setZoneState' && decision.kind !== 'createZone') return [];
    const { from, to } = decision.kind === 'setZoneState' ? decision : { from: undefined, to: decision.state };
    if (!isDisrupted(from) && !isDisrupted(to)) return [];
    const { zone, size: nodes, notReady } = decision;
    const type = isDisrupted(to) ? 'ZoneDisrupted' : 'ZoneRecovered';
    const state = to ?? 'Normal';
    return [{ type, id: `${type}/${zone}/${state}/${lastTickAtMs ?? 0}`, zone, state, nodes, notReady }];
  });
}

/**
 * The same zones, and total disruption, as Events on the ClusterStatus. Each is recorded at most once: the events of a
 * tick that is killed, or that cannot write them, are lost. The decisions have them.
 */
export function clusterEvents(
  decisions: readonly MonitorDecision[],
  zones: readonly ClusterEvent[],
  lastTickAtMs: number | undefined,
): PendingEvent[] {
  const ofZones = zones.flatMap((event): PendingEvent[] =>
    event.type === 'ZoneDisrupted' || event.type === 'ZoneRecovered'
      ? [{ ...zoneChanged(event.type, event), about: CLUSTER_SUBJECT, once: event.id }]
      : [],
  );
  const ofTotal = decisions.flatMap((decision): PendingEvent[] =>
    decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption'
      ? [
          {
            ...totalDisruption(decision.kind === 'enterTotalDisruption', decision.zones),
            about: CLUSTER_SUBJECT,
            once: lastTickAtMs ?? 0,
          },
        ]
      : [],
  );
  return [...ofZones, ...ofTotal];
}

export const isDisrupted = (state: ZoneState | undefined): state is 'PartialDisruption' | 'FullDisruption' =>
  state === 'PartialDisruption' || state === 'FullDisruption';
