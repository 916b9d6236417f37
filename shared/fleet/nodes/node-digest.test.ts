import { expect, it } from 'vitest';
import type { KubeNode } from '../../kinds/types.ts';
import { healthWritesFor } from './node-writes.ts';

const NODE = {
  metadata: {
    name: 'n1',
    uid: 'u1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'topology.kubernetes.io/zone': 'a' },
  },
  status: { conditions: [{ type: 'Ready', status: 'True' as const }] },
} satisfies KubeNode;

const tainted = (key: string): KubeNode => ({ ...NODE, spec: { taints: [{ key, effect: 'NoExecute' }] } });

const writes = (next: KubeNode) =>
  healthWritesFor({ kind: 'update', next, old: NODE, statusPost: false, nowMs: 0 }).length;

it.each<[string, KubeNode]>([
  ['uid', { ...NODE, metadata: { ...NODE.metadata, uid: 'u2' } }],
  ['creation', { ...NODE, metadata: { ...NODE.metadata, creationTimestamp: '2026-01-01T00:00:01Z' } }],
  ['zone', { ...NODE, metadata: { ...NODE.metadata, labels: { 'topology.kubernetes.io/zone': 'b' } } }],
  [
    'exclusion from disruption',
    {
      ...NODE,
      metadata: {
        ...NODE.metadata,
        labels: { ...NODE.metadata.labels, 'node.kubernetes.io/exclude-disruption': '' },
      },
    },
  ],
  ['readiness', { ...NODE, status: { conditions: [{ type: 'Ready', status: 'False' }] } }],
  ['taint not-ready', tainted('node.kubernetes.io/not-ready')],
  ['taint unreachable', tainted('node.kubernetes.io/unreachable')],
])('a change of the %s alone is written to the digest', (_, next) => {
  expect(writes(next)).toBe(1);
});

it('a change of another label is not', () => {
  const labels = { ...NODE.metadata.labels, site: 'harbour' };
  expect(writes({ ...NODE, metadata: { ...NODE.metadata, labels } })).toBe(0);
});
