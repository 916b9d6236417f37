import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { AgentMeter } from '../ports/meter.ts';
import { maskOf } from '../rules/topology/mask.ts';
import { topologyManager } from './topology-admission.ts';

const pod = (uid: string, cpu: string): KubeObject => {
  const amounts = { cpu, memory: '1Gi' };
  return {
    metadata: { name: uid, uid },
    spec: { containers: [{ name: 'c', resources: { requests: amounts, limits: amounts } }] },
  };
};

function manager(policy: 'single-numa-node' | 'none') {
  const counted: string[] = [];
  const meter: AgentMeter = {
    count: (name, labels) => counted.push(labels === undefined ? name : `${name} ${Object.values(labels).join(' ')}`),
    gauge: () => {},
    observe: (name) => counted.push(name),
  };
  const nodes = [0, 1].map((id) => ({ id, cpus: [id * 2, id * 2 + 1], memoryBytes: 2 ** 33 }));
  const settings =
    policy === 'none'
      ? undefined
      : { policy, scope: 'container' as const, allNodes: maskOf([0, 1]), distances: undefined };
  const time = { nowMs: () => 0, monotonicMs: () => 0, uptimeMs: () => 0, sleep: () => Promise.resolve() };
  return { counted, topology: topologyManager({ settings, nodes, meter, time }) };
}

it('keeps the resources of a pod from other pods until the pod is released', () => {
  const { topology, counted } = manager('single-numa-node');
  expect(topology.admit(pod('a', '2'))).toEqual({ kind: 'admitted' });
  expect(topology.admit(pod('a', '2'))).toEqual({ kind: 'admitted' });
  expect(topology.admit(pod('b', '3'))).toMatchObject({ kind: 'refused', reason: 'TopologyAffinityError' });
  expect(topology.admit(pod('b', '2'))).toEqual({ kind: 'admitted' });
  expect(topology.admit(pod('d', '1'))).toMatchObject({ kind: 'refused' });
  topology.release('a');
  expect(topology.admit(pod('d', '2'))).toEqual({ kind: 'admitted' });
  expect(topology.admit(pod('e', '1'))).toMatchObject({ kind: 'refused' });
  const failures = 'kubelet_container_aligned_compute_resources_failure_count container numa_node';
  expect(counted.filter((name) => name === failures)).toHaveLength(3);
  expect(counted.filter((name) => name === 'kubelet_topology_manager_admission_errors_total')).toHaveLength(3);
});

it('admits every pod under the policy none, whatever its resources', () => {
  const { topology, counted } = manager('none');
  expect(topology.admit(pod('a', '64'))).toEqual({ kind: 'admitted' });
  expect(topology.admit(pod('b', '64'))).toEqual({ kind: 'admitted' });
  expect(counted).toEqual([]);
});

it('reports each change of the places of containers, and none without a policy', () => {
  const { topology } = manager('single-numa-node');
  let changes = 0;
  const count = () => {
    changes += 1;
  };
  topology.onChange(count);
  topology.admit(pod('a', '2'));
  expect(topology.placementOf('a', 'c')).toEqual({ cpus: [0, 1], memoryNodes: [0], exclusive: true });
  expect(topology.placementOf('b', 'c')).toEqual({ cpus: [2, 3], memoryNodes: [], exclusive: false });
  topology.admit(pod('b', '3'));
  expect(changes).toBe(1);
  topology.release('a');
  expect([changes, topology.placementOf('a', 'c').exclusive]).toEqual([2, false]);
  const none = manager('none').topology;
  none.onChange(count);
  none.admit(pod('a', '2'));
  expect(changes).toBe(2);
});
