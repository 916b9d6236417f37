/** The numbers of a scheduling cycle: how many nodes are examined, weights, ties. */
import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { type CycleOptions, feasibleNodesWanted, inOrder, schedulePod, totalOf, weightedScores } from './rule.ts';

const OPTIONS: CycleOptions = { percentageOfNodesToScore: 0, defaultTopologySpread: 'none' };
const pod = (parts: { metadata?: object; spec?: object; status?: object } = {}) =>
  schedulablePod({
    metadata: { namespace: 'd', name: 'p', uid: 'u', ...parts.metadata },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }], ...parts.spec },
    status: parts.status,
  } as unknown as KubePod);
const node = (name: string, { cpu = '4', spec = {}, labels = {} } = {}) =>
  schedulableNode({
    metadata: { name, labels },
    spec,
    status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu, pods: '9' } },
  } as unknown as KubeNode);
function snapshotOf(...nodes: readonly ReturnType<typeof node>[]) {
  const snapshot = new Snapshot();
  for (const each of nodes) snapshot.setNode(each);
  return snapshot;
}

it.each([
  [99, 0, 99],
  [100, 0, 100],
  [100, 70, 100],
  [200, 60, 120],
  [200, 10, 100],
  [200, 100, 200],
  [5_000, 0, 500],
  [1_000, 0, 420],
  [10_000, 0, 500],
  [250, 50, 125],
])('of %i nodes, with %i per cent, %i feasible ones are enough', (nodes, percentage, wanted) => {
  expect(feasibleNodesWanted(nodes, percentage)).toBe(wanted);
});

it('scores count by their weights', () => {
  const scores = { TaintToleration: 100, NodeAffinity: 10, NodeResourcesFit: 7 };
  expect(totalOf(scores)).toBe(327);
  expect(weightedScores(scores)).toEqual([
    { plugin: 'TaintToleration', score: 100, weight: 3 },
    { plugin: 'NodeAffinity', score: 10, weight: 2 },
    { plugin: 'NodeResourcesFit', score: 7, weight: 1 },
  ]);
  expect(totalOf({})).toBe(0);
});

it('the highest total is first; equal ones are in an order that depends on the pod', () => {
  const scored = Array.from({ length: 20 }, (_, index) => ({
    nodeName: `n${index}`,
    total: index === 7 ? 2 : 1,
    scores: {},
  }));
  const orderOf = (uid: string) => inOrder(scored, uid).map(({ nodeName }) => nodeName);
  expect(orderOf('u')).toEqual(inOrder(scored.toReversed(), 'u').map(({ nodeName }) => nodeName));
  expect(new Set(['a', 'b', 'c'].map((uid) => orderOf(uid)[0]))).toEqual(new Set(['n7']));
  expect(new Set(['a', 'b', 'c', 'd'].map((uid) => orderOf(uid)[1])).size).toBeGreaterThan(1);
});

describe('a cycle', () => {
  const large = node('large', { cpu: '8' });
  const small = node('small', { cpu: '2' });

  it('without nodes rejects the pod for nothing that a change could help', () => {
    expect(schedulePod(pod(), new Snapshot(), OPTIONS)).toMatchObject({
      kind: 'rejected',
      plugins: [],
      message: 'no nodes available to schedule pods',
    });
  });

  it.each<[object, Partial<CycleOptions>, string, string]>([
    [
      { resourceClaims: [{ name: 'g' }] },
      {},
      'DynamicResources',
      '0/2 nodes are available: dynamic resource claims are not supported.',
    ],
    [
      {},
      {
        volumes: {
          rejection: { plugin: 'VolumeBinding', text: 'x' },
          filter: () => undefined,
          claims: [],
          stepsOn: () => [],
        },
      },
      'VolumeBinding',
      '0/2 nodes are available: x.',
    ],
    [
      {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchFields: ['a', 'b'].map((name) => ({ key: 'metadata.name', operator: 'In', values: [name] })) },
              ],
            },
          },
        },
      },
      {},
      'NodeAffinity',
      '0/2 nodes are available: pod affinity terms conflict.',
    ],
  ])('rejects a pod with %j and %j for itself', (spec, options, plugin, message) => {
    const outcome = schedulePod(pod({ spec }), snapshotOf(large, small), { ...OPTIONS, ...options });
    expect(outcome).toMatchObject({ kind: 'rejected', plugins: [plugin], message });
  });

  it('chooses the better of two nodes, and the only one that is feasible', () => {
    const two = schedulePod(pod(), snapshotOf(large, small), OPTIONS);
    expect(two).toMatchObject({ kind: 'fits', nodeName: 'large', feasible: 2, examined: 2 });
    expect(two.kind === 'fits' && two.best.map(({ nodeName }) => nodeName)).toEqual(['large', 'small']);
    const one = schedulePod(
      pod({ spec: { containers: [{ name: 'c', resources: { requests: { cpu: '3' } } }] } }),
      snapshotOf(large, small),
      OPTIONS,
    );
    expect(one).toMatchObject({ kind: 'fits', nodeName: 'large', feasible: 1, examined: 2, best: [] });
    expect([...one.rejections.keys()]).toEqual(['small']);
    const four = schedulePod(pod(), snapshotOf(large, small, node('a'), node('b')), OPTIONS);
    expect(four.kind === 'fits' && four.best).toHaveLength(3);
  });

  it('counts the reasons of all nodes, by plugin', () => {
    const cordoned = node('cordoned', { spec: { unschedulable: true } });
    const outcome = schedulePod(
      pod({ spec: { containers: [{ name: 'c', resources: { requests: { cpu: '9' } } }] } }),
      snapshotOf(large, small, cordoned),
      OPTIONS,
    );
    expect(outcome).toMatchObject({
      message: '0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.',
      plugins: ['NodeResourcesFit', 'NodeUnschedulable'],
    });
  });

  it('examines only the nodes that the pod names', () => {
    const terms = (name: string) => ({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }],
          },
        },
      },
    });
    expect(schedulePod(pod({ spec: terms('small') }), snapshotOf(large, small), OPTIONS)).toMatchObject({
      nodeName: 'small',
      examined: 1,
    });
    expect(schedulePod(pod({ spec: terms('absent') }), snapshotOf(large, small), OPTIONS)).toMatchObject({
      kind: 'rejected',
      plugins: ['NodeAffinity'],
    });
  });

  it('uses the nominated node while the pod fits there', () => {
    const nominated = (name: string) => pod({ status: { nominatedNodeName: name } });
    expect(schedulePod(nominated('small'), snapshotOf(large, small), OPTIONS)).toMatchObject({
      nodeName: 'small',
      examined: 1,
      best: [],
    });
    const cordoned = node('small', { spec: { unschedulable: true } });
    expect(schedulePod(nominated('small'), snapshotOf(large, cordoned), OPTIONS)).toMatchObject({ nodeName: 'large' });
    expect(schedulePod(nominated('absent'), snapshotOf(large, small), OPTIONS)).toMatchObject({ nodeName: 'large' });
  });

  it('leaves room for nominated pods of the same or a higher priority', () => {
    const place = (priority: number, nominee: object = {}) => {
      const snapshot = snapshotOf(small);
      snapshot.setPod(
        pod({
          metadata: { name: 'nominee', uid: 'nominee', ...nominee },
          spec: { priority: 5, containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }] },
          status: { nominatedNodeName: 'small' },
        }),
      );
      return schedulePod(
        pod({ spec: { priority, containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] } }),
        snapshot,
        OPTIONS,
      ).kind;
    };
    expect([place(4), place(5), place(6)]).toEqual(['rejected', 'rejected', 'fits']);
    expect(place(4, { uid: 'u' })).toBe('fits');
  });

  it('while the safety gate is closed uses nodes with a recent heartbeat', () => {
    const hasRecentHeartbeat = (name: string) => name === 'small';
    expect(schedulePod(pod(), snapshotOf(large, small), { ...OPTIONS, hasRecentHeartbeat })).toMatchObject({
      nodeName: 'small',
    });
    expect(schedulePod(pod(), snapshotOf(large), { ...OPTIONS, hasRecentHeartbeat })).toMatchObject({
      plugins: ['SafetyGate'],
    });
  });

  it('prefers nodes without taints that it does not tolerate, and with labels that it wants', () => {
    const tainted = (name: string) => node(name, { spec: { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] } });
    const outcome = schedulePod(pod(), snapshotOf(tainted('a'), node('b')), OPTIONS);
    expect(
      outcome.kind === 'fits' && outcome.best.map(({ nodeName, scores }) => [nodeName, scores.TaintToleration]),
    ).toEqual([
      ['b', 100],
      ['a', 0],
    ]);
    const preference = {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 4, preference: { matchExpressions: [{ key: 'disk', operator: 'Exists' }] } },
          ],
        },
      },
    };
    const wanted = schedulePod(
      pod({ spec: { ...preference, containers: [{ name: 'c' }] } }),
      snapshotOf(node('a'), node('b', { labels: { disk: 'ssd' } })),
      OPTIONS,
    );
    expect(
      wanted.kind === 'fits' && wanted.best.map(({ nodeName, scores }) => [nodeName, scores.NodeAffinity]),
    ).toEqual([
      ['b', 100],
      ['a', 0],
    ]);
  });

  it('scores the balance of resources only for a pod that requests any', () => {
    const scoresOf = (requests: object) => {
      const outcome = schedulePod(
        pod({ spec: { containers: [{ name: 'c', resources: { requests } }] } }),
        snapshotOf(large, small),
        OPTIONS,
      );
      return outcome.kind === 'fits' ? outcome.best[0]!.scores.NodeResourcesBalancedAllocation : undefined;
    };
    expect([scoresOf({}), scoresOf({ cpu: '1' })]).toEqual([undefined, expect.any(Number)]);
    const memory = schedulableNode({
      metadata: { name: 'm' },
      status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu: '2', memory: '4Gi', pods: '9' } },
    } as unknown as KubeNode);
    const outcome = schedulePod(
      pod({ spec: { containers: [{ name: 'c', resources: { requests: { memory: '1Gi' } } }] } }),
      snapshotOf(memory, { ...memory, name: 'other' }),
      OPTIONS,
    );
    expect(outcome.kind === 'fits' && outcome.best[0]!.scores.NodeResourcesBalancedAllocation).toEqual(
      expect.any(Number),
    );
  });
});
