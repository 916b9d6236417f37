/** The state of the cluster as its controllers see it, read-only: one object. */

import { defined } from '../../defined.ts';
import type { FleetState } from '../../fleet/fleet-store.ts';
import { gateVerdictFor } from '../../fleet/gate.ts';
import { policyOf, profileNames } from '../../fleet/nodes/node-profile.ts';
import type { Policy } from '../../fleet/policy.ts';
import { ageSince } from '../../kubernetes/age.ts';
import { nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import { formatMicroTime, formatTime } from '../../kubernetes/time.ts';
import type { MeasuredForm } from '../../watches/stream-form.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { READ_ONLY } from '../read-only.ts';
import type { KubeClusterStatus } from '../types.ts';
import { CLUSTER_STATUS, CLUSTER_STATUS_UID, CLUSTER_STATUSES } from './resource.ts';

export const clusterstatuses: ResourceDescriptor = {
  ...CLUSTER_STATUSES,
  singular: 'clusterstatus',
  listKind: 'ClusterStatusList',
  shortNames: [],
  categories: [],
  subresources: [],
  columns: [
    nameColumn,
    textColumn('Gate', 'Whether the safety gate is open, or why it is closed.'),
    textColumn('Evictions', 'Whether pods of silent nodes are evicted, or why not.'),
    textColumn('Last-Tick', 'Time since the last finished tick of node-monitor.'),
    textColumn('Nodes', 'Nodes that it saw.'),
  ],
  row: ({ metadata, status = {} }: KubeClusterStatus, nowMs) => [
    metadata.name ?? '',
    status.gate?.state === 'Closed' ? `Closed (${(status.gate.reasons ?? []).join(', ')})` : 'Open',
    evictionsCell(status),
    ageSince(status.lastTickTime, nowMs),
    String(status.nodes ?? 0),
  ],
  ...READ_ONLY,
};

function evictionsCell({ gate, totalDisruption }: NonNullable<KubeClusterStatus['status']>): string {
  if (totalDisruption === true) return 'Held (no zone has a Ready node)';
  return gate?.state === 'Closed' ? 'Held (gate closed)' : 'Allowed';
}

/** `nowMs`: ticks that are missing close the gate, whatever the last tick stored. */
export function clusterStatusObject(
  { fence, gate, disruption, nodes }: FleetState,
  at: { readonly nowMs: number; readonly policy: Policy; readonly watches: MeasuredForm | undefined },
): KubeClusterStatus {
  const verdict = gateVerdictFor(gate, at);
  const closed = verdict.kind === 'holding' ? verdict : undefined;
  const sinceMs = closed?.sinceMs ?? gate.sinceMs;
  const { lastTickAtMs } = gate;
  return {
    apiVersion: apiVersionOf(CLUSTER_STATUSES),
    kind: clusterstatuses.kind,
    metadata: { name: CLUSTER_STATUS, uid: CLUSTER_STATUS_UID, resourceVersion: String(fence + 1) },
    status: {
      ...defined({ lastTickTime: lastTickAtMs === undefined ? undefined : formatMicroTime(lastTickAtMs), nodes }),
      ticks: fence,
      gate: {
        state: closed === undefined ? 'Open' : 'Closed',
        reasons: [...(closed?.reasons ?? [])],
        ...defined({ since: sinceMs === 0 ? undefined : formatTime(sinceMs) }),
      },
      totalDisruption: disruption.total,
      heartbeats: profileNames(at.policy).map((profile) => {
        const { beatIntervalSeconds, nodeMonitorGracePeriodSeconds } = policyOf(at.policy, profile);
        return { profile, intervalSeconds: beatIntervalSeconds, graceSeconds: nodeMonitorGracePeriodSeconds };
      }),
      ...(at.watches === undefined ? {} : { watches: watchesStatus(at.watches) }),
    },
  };
}

const watchesStatus = ({ form, measuredMs }: MeasuredForm) => ({
  ...(form.kind === 'stream'
    ? { form: 'Stream' as const, paddingBytes: form.paddingBytes }
    : { form: 'LongPoll' as const }),
  measuredTime: formatTime(measuredMs),
});
