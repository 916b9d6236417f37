/** A Node as a kubelet registers it, which has been Ready for long. */

import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import { nodes as nodesResource } from '../shared/kinds/registry.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { formatTime } from '../shared/kubernetes/time.ts';

export function readyNode(name: string, zone: string, nowMs: number, uid: string): KubeObject {
  const now = formatTime(nowMs);
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
    reason: 'KubeletSaysSo',
    message: 'as the kubelet says',
  }));
  const body: KubeObject = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid,
      creationTimestamp: now,
      labels: {
        [ZONE_LABEL]: zone,
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'arm64',
      },
    },
    spec: {},
    status: {
      conditions,
      capacity: { cpu: '4', memory: '8037172Ki', pods: '110' },
      addresses: [{ type: 'Hostname', address: name }],
    },
  };
  const prepared = nodesResource.prepareForCreate(body, { nowMs });
  // Ready since long ago: the taint of a new Node is off.
  return { ...prepared, spec: {} };
}
