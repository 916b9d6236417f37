/**
 * Metrics of the controllers: those of upstream's node lifecycle controller under its names, and our own with the
 * prefix `nodekeeper_`. Source: pkg/controller/nodelifecycle/metrics.go.
 */

import type { FleetRecords } from '../../../shared/fleet/fleet-store.ts';
import type { GateVerdict } from '../../../shared/fleet/gate.ts';
import { isSilencePlanned, type NodeHealth } from '../../../shared/fleet/nodes/health.ts';
import { type ZoneCount, zoneMetricsOf } from '../../../shared/fleet/zone-state.ts';
import type { MetricFamily } from './open-metrics.ts';

const ZONE_STATES = ['Initial', 'Normal', 'PartialDisruption', 'FullDisruption'] as const;

export function controllerFamilies(
  { state, zones, queue }: FleetRecords,
  nodes: readonly CountedNode[],
  { nowMs, gate }: { readonly nowMs: number; readonly gate: GateVerdict },
): readonly MetricFamily[] {
  const metrics = [...zoneCounts(zones, nodes, nowMs)].map(([zone, count]) => zoneMetricsOf(zone, count));
  const byZone = (name: string, help: string, value: (of: (typeof metrics)[number]) => number): MetricFamily => ({
    name,
    help,
    type: 'gauge',
    samples: metrics.map((of) => ({ labels: { zone: of.zone }, value: value(of) })),
  });
  return [
    byZone(
      'node_collector_zone_health',
      'Gauge measuring percentage of healthy nodes per zone.',
      (of) => of.healthPercent,
    ),
    byZone('node_collector_zone_size', 'Gauge measuring number of registered Nodes per zones.', ({ size }) => size),
    byZone(
      'node_collector_unhealthy_nodes_in_zone',
      'Gauge measuring number of not Ready Nodes per zones.',
      ({ unhealthy }) => unhealthy,
    ),
    {
      name: 'node_collector_evictions_total',
      help: 'Number of Node evictions that happened since the record of the zone was created.',
      type: 'counter',
      samples: zones.map(({ zone, evictions = 0 }) => ({ labels: { zone }, value: evictions })),
    },
    byZone(
      'nodekeeper_queued_nodes',
      'Nodes that wait for the limiter of their zone.',
      ({ zone }) => queue.filter((item) => item.zone === zone).length,
    ),
    {
      name: 'nodekeeper_zone_state',
      help: '1 for the state of the zone, 0 for the others.',
      type: 'gauge',
      samples: zones.flatMap((of) =>
        ZONE_STATES.map((each) => ({ labels: { zone: of.zone, state: each }, value: of.state === each ? 1 : 0 })),
      ),
    },
    {
      name: 'nodekeeper_zone_eviction_rate',
      help: 'NoExecute taints per second that the limiter of the zone allows.',
      type: 'gauge',
      samples: zones.map(({ zone, limiter }) => ({ labels: { zone }, value: limiter.ratePerSecond })),
    },
    {
      name: 'nodekeeper_zone_next_token_timestamp_seconds',
      help: 'When the limiter of the zone grants its next token; absent before its first grant.',
      type: 'gauge',
      samples: zones.flatMap(({ zone, limiter: { tatMs } }) =>
        tatMs === undefined ? [] : [{ labels: { zone }, value: tatMs / 1_000 }],
      ),
    },
    {
      name: 'nodekeeper_probes',
      help: 'Probe heartbeats of the last two heartbeat intervals.',
      type: 'gauge',
      samples: [true, false].map((accepted) => ({
        labels: { result: accepted ? 'accepted' : 'failed' },
        value: state.gate.probes.filter((probe) => probe.accepted === accepted).length,
      })),
    },
    single('nodekeeper_gate_holding', '1 while the safety gate is closed.', gate.kind === 'holding' ? 1 : 0),
    single('nodekeeper_total_disruption', '1 while no zone has a Ready node.', state.disruption.total ? 1 : 0),
    {
      ...single('nodekeeper_last_tick_timestamp_seconds', 'When the last finished tick of node-monitor began.', 0),
      samples: state.gate.lastTickAtMs === undefined ? [] : [{ labels: {}, value: state.gate.lastTickAtMs / 1_000 }],
    },
    single('nodekeeper_nodes', 'Registered Nodes.', nodes.length),
  ];
}

const single = (name: string, help: string, value: number): MetricFamily => ({
  name,
  help,
  type: 'gauge',
  samples: [{ labels: {}, value }],
});

type CountedNode = Pick<NodeHealth, 'zone' | 'ready' | 'excluded' | 'plannedUntilMs'>;

/** Also zones that have a record and no node: their size is 0. Counted as node-monitor does (marks.rule.ts). */
function zoneCounts(
  zones: FleetRecords['zones'],
  nodes: readonly CountedNode[],
  nowMs: number,
): ReadonlyMap<string, ZoneCount> {
  const counts = new Map<string, { ready: number; notReady: number }>();
  for (const { zone } of zones) counts.set(zone, { ready: 0, notReady: 0 });
  for (const node of nodes) {
    const { zone, ready, excluded } = node;
    const count = counts.get(zone) ?? { ready: 0, notReady: 0 };
    counts.set(zone, count);
    if (excluded || isSilencePlanned(node, nowMs)) continue;
    if (ready === 'True') count.ready += 1;
    else count.notReady += 1;
  }
  return counts;
}
