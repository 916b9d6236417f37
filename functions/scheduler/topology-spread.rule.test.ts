import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod, PodSpec } from '../../shared/kinds/types.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { spreadScores } from './topology-spread.rule.ts';

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
