import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod, PodSpec } from '../../shared/kinds/types.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { hardSpreadCounts, spreadDomains, spreadFilter, spreadScores } from './topology-spread.rule.ts';

const HOST = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const labels = { app: 'web' };

function pod(name: string, spec: object = {}) {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'web', controller: true }];
  const metadata = { name, namespace: 'default', uid: name, labels, ownerReferences };
  return schedulablePod({ metadata, spec: { containers: [{ name: 'c' }], ...spec } as PodSpec } as KubePod);
}

/** Each node: its labels, and how many pods it has. */
function scoresOf(
  nodes: Record<string, readonly [Record<string, string>, number]>,
  spec: object = {},
  usesDefaults = true,
) {
  const snapshot = new Snapshot();
  for (const [name, [nodeLabels, count]] of Object.entries(nodes)) {
    const status = { allocatable: { cpu: '4', pods: '10' } };
    snapshot.setNode(
      schedulableNode({ metadata: { name, uid: name, labels: nodeLabels }, status } as unknown as KubeNode),
    );
    for (let index = 0; index < count; index += 1) snapshot.setPod(pod(`${name}-${index}`, { nodeName: name }));
  }
  const scores = spreadScores(pod('waiting', spec), [...snapshot.nodes.values()], { snapshot, usesDefaults });
  return scores && Object.fromEntries(scores);
}

const soft = (...constraints: readonly (readonly [topologyKey: string, maxSkew: number])[]) => ({
  topologySpreadConstraints: constraints.map(([topologyKey, maxSkew]) => ({
    topologyKey,
    maxSkew,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: labels },
  })),
});
const host = (name: string) => ({ [HOST]: name });

describe('the score of a node for spreading', () => {
  it('falls with the pods that it has, by the logarithm of the number of nodes', () => {
    const nodes = { a: [host('a'), 2], b: [host('b'), 1], c: [host('c'), 0] } as const;
    expect(scoresOf(nodes, soft([HOST, 1]))).toEqual({ a: 0, b: 33, c: 100 });
    expect(scoresOf(nodes, soft([HOST, 3]))).toEqual({ a: 40, b: 60, c: 100 });
  });

  it('counts nodes, not names of hosts', () => {
    expect(scoresOf({ a: [host('h'), 3], b: [host('h'), 1] }, soft([HOST, 1]))).toEqual({ a: 25, b: 100 });
  });

  it('falls with the pods of its zone, by the number of zones', () => {
    const nodes = { a: [{ [ZONE]: 'x' }, 2], b: [{ [ZONE]: 'x' }, 1], c: [{ [ZONE]: 'y' }, 1] } as const;
    expect(scoresOf(nodes, soft([ZONE, 1]))).toEqual({ a: 25, b: 25, c: 100 });
  });

  it('is 0 for a node without one of the keys, which counts for none', () => {
    const both = (name: string) => ({ ...host(name), [ZONE]: 'x' });
    const nodes = { a: [both('a'), 2], b: [both('b'), 1], c: [host('c'), 5], d: [{}, 0] } as const;
    expect(scoresOf(nodes, soft([HOST, 1], [ZONE, 1]))).toEqual({ a: 83, b: 100, c: 0, d: 0 });
  });

  it('is 100 for all where no pod runs', () => {
    expect(scoresOf({ a: [host('a'), 0], b: [host('b'), 0] }, soft([HOST, 1]))).toEqual({ a: 100, b: 100 });
  });

  it('is by host and zone for pods of one controller, without a zone by host alone', () => {
    expect(scoresOf({ a: [{ ...host('a'), [ZONE]: 'x' }, 1], b: [host('b'), 0] })).toEqual({ a: 22, b: 100 });
  });

  it('is none without constraints: without defaults, or with hard ones alone', () => {
    expect(scoresOf({ a: [host('a'), 1] }, {}, false)).toBeUndefined();
    const hard = soft([HOST, 1]).topologySpreadConstraints.map((each) => ({
      ...each,
      whenUnsatisfiable: 'DoNotSchedule',
    }));
    expect(scoresOf({ a: [host('a'), 1] }, { topologySpreadConstraints: hard })).toBeUndefined();
  });
});

describe('a hard constraint', () => {
  const TAINT = { key: 'k', effect: 'NoSchedule' };
  interface NodeParts {
    readonly labels: Record<string, string>;
    readonly taints?: readonly object[];
    readonly pods?: number;
  }
  const zone = (value: string, more: Record<string, string> = {}) => ({ [ZONE]: value, ...more });

  function world(nodes: Record<string, NodeParts>, others: readonly ReturnType<typeof pod>[] = []) {
    const snapshot = new Snapshot();
    for (const [name, { labels: nodeLabels, taints = [], pods = 0 }] of Object.entries(nodes)) {
      const status = {
        allocatable: { cpu: '4', pods: '10' },
        conditions: [{ type: 'Ready', status: 'True' }],
      };
      const metadata = { name, uid: name, labels: nodeLabels };
      snapshot.setNode(schedulableNode({ metadata, spec: { taints }, status } as unknown as KubeNode));
      for (let index = 0; index < pods; index += 1) snapshot.setPod(pod(`${name}-${index}`, { nodeName: name }));
    }
    for (const other of others) snapshot.setPod(other);
    return snapshot;
  }
  const hard = (more: object = {}, spec: object = {}) =>
    pod('waiting', {
      topologySpreadConstraints: [
        {
          topologyKey: ZONE,
          maxSkew: 1,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: labels },
          ...more,
        },
      ],
      ...spec,
    });
  const domains = (waiting: ReturnType<typeof pod>, snapshot: Snapshot) =>
    spreadDomains(waiting, snapshot).map(({ counts, least }) => [Object.fromEntries(counts), least]);
  const passing = (waiting: ReturnType<typeof pod>, snapshot: Snapshot) => {
    const filter = spreadFilter(waiting, snapshot)!;
    return [...snapshot.nodes.values()].map(
      (state) =>
        filter(state)
          ?.reasons[0]?.match(/missing|didn't/g)
          ?.at(-1) ?? 'fits',
    );
  };

  it('counts the pods of each zone, and nodes without its key in none', () => {
    const snapshot = world({
      a: { labels: zone('x'), pods: 2 },
      b: { labels: zone('x'), pods: 1 },
      c: { labels: zone('y') },
      d: { labels: {}, pods: 5 },
    });
    expect(domains(hard(), snapshot)).toEqual([[{ x: 3, y: 0 }, 0]]);
    expect(passing(hard(), snapshot)).toEqual(["didn't", "didn't", 'fits', 'missing']);
  });

  it('permits as much skew as it says, the pod itself included', () => {
    const snapshot = world({ a: { labels: zone('x'), pods: 2 }, b: { labels: zone('y'), pods: 1 } });
    expect(passing(hard({ maxSkew: 1 }), snapshot)).toEqual(["didn't", 'fits']);
    expect(passing(hard({ maxSkew: 2 }), snapshot)).toEqual(['fits', 'fits']);
    const stranger = { labelSelector: { matchLabels: { app: 'other' } } };
    expect(passing(hard(stranger), snapshot)).toEqual(['fits', 'fits']);
    // It matches pods of the zone x, and not the waiting one.
    const others = [
      schedulablePod({
        metadata: { name: 'o', namespace: 'default', uid: 'o', labels: { app: 'other' } },
        spec: { containers: [], nodeName: 'a' },
      }),
    ];
    expect(passing(hard(stranger), world({ a: { labels: zone('x') }, b: { labels: zone('y') } }, others))).toEqual([
      'fits',
      'fits',
    ]);
  });

  it('with another one counts the nodes that have the keys of both', () => {
    const snapshot = world({
      a: { labels: zone('x', host('a')), pods: 1 },
      b: { labels: zone('y'), pods: 1 },
      c: { labels: host('c') },
    });
    const both = [ZONE, HOST].map((topologyKey) => ({
      topologyKey,
      maxSkew: 1,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: labels },
    }));
    expect(domains(pod('waiting', { topologySpreadConstraints: both }), snapshot)).toEqual([
      [{ x: 1 }, 1],
      [{ a: 1 }, 1],
    ]);
    expect(hardSpreadCounts(pod('waiting', { topologySpreadConstraints: both }), snapshot)).toHaveLength(2);
  });

  it.each([
    [undefined, undefined, { y: 0, z: 0 }],
    ['Honor', 'Ignore', { y: 0, z: 0 }],
    ['Ignore', undefined, { x: 1, y: 0, z: 0 }],
    ['Honor', 'Honor', { y: 0 }],
    ['Ignore', 'Honor', { x: 1, y: 0 }],
  ])(
    'with the policies %s for affinity and %s for taints counts %j',
    (nodeAffinityPolicy, nodeTaintsPolicy, expected) => {
      const snapshot = world({
        a: { labels: zone('x'), pods: 1 },
        b: { labels: zone('y', { disk: 'ssd' }) },
        c: { labels: zone('z', { disk: 'ssd' }), taints: [TAINT] },
      });
      const policies = {
        ...(nodeAffinityPolicy && { nodeAffinityPolicy }),
        ...(nodeTaintsPolicy && { nodeTaintsPolicy }),
      };
      expect(domains(hard(policies, { nodeSelector: { disk: 'ssd' } }), snapshot)[0]![0]).toEqual(expected);
    },
  );

  it('counts no pod with an empty selector, of another namespace, or that terminates', () => {
    const meta = { name: 'o', uid: 'o', labels };
    const others = [
      schedulablePod({ metadata: { ...meta, namespace: 'other' }, spec: { containers: [], nodeName: 'a' } }),
      schedulablePod({
        metadata: { ...meta, namespace: 'default', deletionTimestamp: '2026-01-01T00:00:00Z' },
        spec: { containers: [], nodeName: 'a' },
      }),
    ];
    const snapshot = world({ a: { labels: zone('x') } }, others);
    expect(domains(hard(), snapshot)).toEqual([[{ x: 0 }, 0]]);
    expect(domains(hard({ labelSelector: {} }), world({ a: { labels: zone('x'), pods: 2 } }))).toEqual([[{ x: 0 }, 0]]);
  });

  it('has a least count of 0 with fewer zones than it wants', () => {
    const snapshot = world({ a: { labels: zone('x'), pods: 1 }, b: { labels: zone('y'), pods: 2 } });
    expect([2, 3].map((minDomains) => domains(hard({ minDomains }), snapshot)[0]![1])).toEqual([1, 0]);
    expect(domains(hard(), world({ a: { labels: {} } }))).toEqual([[{}, 0]]);
  });

  it('is none for a pod with soft ones alone', () => {
    expect(spreadFilter(pod('waiting', soft([ZONE, 1])), world({ a: { labels: zone('x') } }))).toBeUndefined();
  });
});
