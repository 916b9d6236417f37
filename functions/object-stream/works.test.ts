/** Which changes of Nodes and Pods require which works. What the works do is tested where they are. */
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { type NodeChange, type PodChange, type WorkKind, type WorksDependencies, worksOf } from './works.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const dependencies = { policy: defaultPolicy } as unknown as WorksDependencies;
/** `node: positions` of each work; positions alone where a work is for no single node. */
const found = (kind: WorkKind, changes: { nodes?: readonly NodeChange[]; pods?: readonly PodChange[] }) =>
  worksOf(kind, dependencies, { nodes: [], pods: [], ...changes }, NOW_MS).map(
    ({ nodeName, of }) => `${nodeName === undefined ? '' : `${nodeName}: `}${of.join()}`,
  );

const node = (name: string, parts: { metadata?: object; spec?: object; ready?: string } = {}): KubeNode =>
  ({
    metadata: { name, uid: `u-${name}`, ...parts.metadata },
    spec: parts.spec,
    status: { conditions: [{ type: 'Ready', status: parts.ready ?? 'True' }] },
  }) as KubeNode;
const pod = (parts: { metadata?: object; spec?: object; status?: object } = {}): KubeObject =>
  ({
    metadata: { namespace: 'd', name: 'p', uid: 'u', ...parts.metadata },
    spec: { nodeName: 'n', ...parts.spec },
    status: parts.status,
  }) as KubeObject;
const ofNode = (before: KubeNode | undefined, after: KubeNode | undefined, position = 0): NodeChange => ({
  position,
  before,
  after,
});
const ofPod = (before: KubeObject | undefined, after: KubeObject | undefined, position = 0): PodChange => ({
  position,
  before,
  after,
});
const again = node('n', { metadata: { uid: 'again' } });

describe('works of Nodes', () => {
  it('record that Nodes were registered and removed, all of a batch at once', () => {
    const nodes = [
      ofNode(undefined, node('n'), 1),
      ofNode(node('n'), node('n'), 2),
      ofNode(node('n'), again, 3),
      ofNode(again, undefined, 4),
    ];
    expect(found('registered', { nodes })).toEqual(['1,3']);
    expect(found('removed', { nodes })).toEqual(['3,4']);
    expect([found('registered', { nodes: nodes.slice(1, 2) }), found('removed', { nodes: nodes.slice(0, 2) })]).toEqual(
      [[], []],
    );
  });

  it('are one for each Node, with all its changes', () => {
    const nodes = [ofNode(undefined, node('n'), 1), ofNode(undefined, node('m'), 2), ofNode(node('n'), undefined, 3)];
    expect(found('node', { nodes })).toEqual(['1,3', '2']);
  });

  const cidrs = (podCIDRs: readonly string[], metadata: object = {}) => node('n', { spec: { podCIDRs }, metadata });
  it.each<[string, NodeChange, number]>([
    ['a Node without pod CIDRs', ofNode(undefined, node('n')), 1],
    ['a Node that keeps having none', ofNode(node('n'), node('n')), 1],
    ['a Node with new ones', ofNode(node('n'), cidrs(['10.0.0.0/24'])), 1],
    ['a Node that keeps its own', ofNode(cidrs(['10.0.0.0/24']), cidrs(['10.0.0.0/24'])), 0],
    ['a Node that is created with some', ofNode(undefined, cidrs(['10.0.0.0/24'])), 1],
    [
      'a Node that is created again with the same',
      ofNode(cidrs(['10.0.0.0/24']), cidrs(['10.0.0.0/24'], { uid: 'v' })),
      2,
    ],
    ['a Node that is deleted', ofNode(cidrs(['10.0.0.0/24']), undefined), 1],
    ['a retry', { ...ofNode(cidrs(['10.0.0.0/24']), cidrs(['10.0.0.0/24'])), isRetry: true }, 1],
  ])('settle the pod CIDRs of %s: %i', (_text, change, works) => {
    expect(found('cidrs', { nodes: [change] })).toHaveLength(works);
  });

  it('settle no pod CIDRs of a Node that no longer exists at the end of the batch', () => {
    expect(found('cidrs', { nodes: [ofNode(undefined, node('n'), 1), ofNode(node('n'), undefined, 2)] })).toEqual([
      '2',
    ]);
    expect(found('cidrs', { nodes: [ofNode(undefined, node('n'), 1), ofNode(node('n'), again, 2)] })).toEqual([
      '2',
      '2',
    ]);
  });

  const tainted = (effect: string, ready = 'Unknown', key = 'node.kubernetes.io/unreachable') =>
    node('n', { spec: { taints: [{ key, effect, timeAdded: '2026-01-01T00:00:00Z' }] }, ready });
  it.each<[string, NodeChange, boolean]>([
    ['gets a NoExecute taint', ofNode(node('n'), tainted('NoExecute')), true],
    ['loses one', ofNode(tainted('NoExecute'), node('n')), true],
    ['is created with one', ofNode(undefined, tainted('NoExecute')), true],
    ['gets another taint', ofNode(node('n'), tainted('NoSchedule', 'True')), false],
    ['keeps its taint', ofNode(tainted('NoExecute'), tainted('NoExecute')), false],
    [
      'becomes silent with the taint of an earlier silence',
      ofNode(tainted('NoExecute', 'True'), tainted('NoExecute')),
      true,
    ],
    ['is no longer silent, with the taint', ofNode(tainted('NoExecute'), tainted('NoExecute', 'True')), false],
    ['is retried', { ...ofNode(node('n'), node('n')), isRetry: true }, true],
  ])('evict pods of a Node that %s: %s', (_text, change, expected) => {
    expect(found('evictions', { nodes: [change] })).toEqual(expected ? ['n: 0'] : []);
  });
});

describe('works of pods', () => {
  const onOther = pod({ spec: { nodeName: 'm' } });
  const unbound = pod({ spec: { nodeName: undefined } });

  it.each<[string, PodChange, readonly string[]]>([
    ['is bound', ofPod(unbound, pod()), ['n: 0']],
    ['is created', ofPod(undefined, pod()), ['n: 0']],
    ['is deleted', ofPod(pod(), undefined), ['n: 0']],
    ['moves', ofPod(pod(), onOther), ['n: 0', 'm: 0']],
    ['has another label', ofPod(pod(), pod({ metadata: { labels: { a: 'b' } } })), ['n: 0']],
    ['has another spec', ofPod(pod(), pod({ spec: { priority: 1 } })), ['n: 0']],
    ['only changes its status', ofPod(pod(), pod({ status: { phase: 'Running' } })), []],
    [
      'only has another version',
      ofPod(pod(), pod({ metadata: { resourceVersion: '2', generation: 2, managedFields: [] } })),
      [],
    ],
    ['has no node', ofPod(undefined, unbound), []],
  ])('notify the node of a pod that %s', (_text, change, nodes) => {
    expect(found('podsVersion', { pods: [change] })).toEqual(nodes);
  });

  it.each<[string, PodChange, readonly string[]]>([
    ['is bound', ofPod(unbound, pod()), ['n: 0']],
    ['is deleted', ofPod(pod(), undefined), ['n: 0']],
    ['moves', ofPod(pod(), onOther), ['n: 0', 'm: 0']],
    ['is created again', ofPod(pod(), pod({ metadata: { uid: 'v' } })), ['n: 0']],
    ['has other tolerations', ofPod(pod(), pod({ spec: { tolerations: [{ operator: 'Exists' }] } })), ['n: 0']],
    ['begins to terminate', ofPod(pod(), pod({ metadata: { deletionTimestamp: 't' } })), ['n: 0']],
    ['has another label', ofPod(pod(), pod({ metadata: { labels: { a: 'b' } } })), []],
    ['has no node', ofPod(undefined, unbound), []],
  ])('decide about the eviction of a pod that %s', (_text, change, nodes) => {
    expect(found('evictions', { pods: [change] })).toEqual(nodes);
  });

  it('are one for each node, with the changes of the Node and of its pods', () => {
    const changes = {
      nodes: [ofNode(node('n'), node('n', { spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } }), 1)],
      pods: [ofPod(undefined, pod(), 2), ofPod(undefined, onOther, 3)],
    };
    expect(found('evictions', changes)).toEqual(['n: 1,2', 'm: 3']);
    expect(found('podsVersion', { nodes: [{ ...changes.nodes[0]!, isRetry: true }], pods: changes.pods })).toEqual([
      'n: 1,2',
      'm: 3',
    ]);
  });

  it('look at the nodes of pods that are bound now, all of a batch at once', () => {
    const pods = [
      ofPod(undefined, pod(), 1),
      ofPod(unbound, pod(), 2),
      ofPod(pod(), pod({ metadata: { uid: 'v' } }), 3),
      ofPod(pod(), pod(), 4),
      ofPod(pod(), undefined, 5),
      ofPod(undefined, unbound, 6),
      { ...ofPod(pod(), pod(), 7), isRetry: true },
    ];
    expect(found('boundPods', { pods })).toEqual(['1,2,3,7']);
    expect(found('boundPods', { pods: pods.slice(3, 6) })).toEqual([]);
  });
});

it('each work has its kind', () => {
  const [work] = worksOf('registered', dependencies, { nodes: [ofNode(undefined, node('n'))], pods: [] }, NOW_MS);
  expect(work?.kind).toBe('registered');
});
