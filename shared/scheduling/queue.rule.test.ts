import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../kinds/types.ts';
import type { PluginName } from './filter.rule.ts';
import {
  concernsOthers,
  dueAtMs,
  inQueueOrder,
  mayHelp,
  podBackoffMs,
  type WaitingPod,
  type WorldChange,
} from './queue.rule.ts';
import { schedulableNode, schedulablePod } from './world.rule.ts';

const POLICY = { podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 10, podUnschedulableRetrySeconds: 300 };
const waiting = (more: Partial<WaitingPod> = {}): WaitingPod => ({
  uid: 'u',
  rejections: 1,
  errors: 0,
  triedAtMs: 5_000,
  plugins: ['NodeResourcesFit'],
  isRequeued: false,
  ...more,
});

it.each([
  [0, 0, 0],
  [1, 0, 1_000],
  [2, 0, 2_000],
  [5, 0, 10_000],
  [5, 1, 1_000],
  [0, 2, 2_000],
])('after %i rejections and %i faults, a pod waits %i ms', (rejections, errors, backoff) => {
  expect(podBackoffMs({ rejections, errors }, POLICY)).toBe(backoff);
});

it.each<[Partial<WaitingPod>, number]>([
  [{}, 305_001],
  [{ isRequeued: true }, 6_000],
  [{ plugins: [] }, 6_000],
  [{ plugins: ['SafetyGate'] }, 6_000],
  [{ plugins: ['SafetyGate', 'NodePorts'] }, 6_000],
  [{ plugins: ['NodePorts', 'NodeAffinity'] }, 305_001],
  [{ errors: 2 }, 7_000],
])('a pod with %j is due at %i ms', (more, due) => {
  expect(dueAtMs(waiting(more), POLICY)).toBe(due);
});

it('the queue is in the order of priority, then of waiting, then of uids', () => {
  const queued = (uid: string, priority: number, queuedAtMs: number) => ({ pod: { uid, priority }, queuedAtMs });
  const pods = [queued('c', 0, 5), queued('b', 0, 5), queued('d', 0, 4), queued('a', 7, 9)];
  for (const order of [pods, pods.toReversed()]) {
    expect(order.toSorted(inQueueOrder).map(({ pod }) => pod.uid)).toEqual(['a', 'd', 'b', 'c']);
  }
});

interface PodParts {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: object;
  readonly nodeName?: string;
  readonly nominated?: string;
  readonly spec?: object;
  readonly hostPort?: number;
  readonly cpu?: string;
  readonly terminating?: boolean;
  readonly phase?: string;
}
const pod = ({
  name = 'p',
  namespace = 'd',
  labels = {},
  nodeName,
  nominated,
  spec,
  hostPort,
  cpu = '2',
  terminating,
  phase,
}: PodParts = {}) =>
  schedulablePod({
    metadata: { namespace, name, uid: name, labels, ...(terminating === true ? { deletionTimestamp: 'x' } : {}) },
    spec: {
      nodeName,
      containers: [
        {
          name: 'c',
          resources: { requests: { cpu } },
          ...(hostPort === undefined ? {} : { ports: [{ containerPort: 1, hostPort }] }),
        },
      ],
      ...spec,
    },
    status: { phase, nominatedNodeName: nominated },
  } as unknown as KubePod);

interface NodeParts {
  readonly cpu?: string;
  readonly pods?: string;
  readonly labels?: object;
  readonly taints?: readonly object[];
  readonly unschedulable?: boolean;
  readonly features?: readonly string[];
}
const node = ({ cpu = '4', pods = '9', labels = {}, taints = [], unschedulable = false, features }: NodeParts = {}) =>
  schedulableNode({
    metadata: { name: 'n', labels },
    spec: { taints, unschedulable },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      allocatable: { cpu, pods },
      declaredFeatures: features,
    },
  } as unknown as KubeNode);

const ofNode = (before: NodeParts | undefined, after: NodeParts | undefined): WorldChange => ({
  kind: 'node',
  before: before && node(before),
  after: after && node(after),
});
const ofPod = (before: PodParts | undefined, after: PodParts | undefined): WorldChange => ({
  kind: 'pod',
  before: before && pod({ name: 'other', ...before }),
  after: after && pod({ name: 'other', ...after }),
});
const BOUND = { nodeName: 'n' };

/** Whether a change may help a pod that this plugin rejected. */
const helps = (plugin: PluginName, change: WorldChange, parts: PodParts = {}, namespaces = new Map()): boolean =>
  mayHelp(pod(parts), [plugin], { change, namespaces });

describe('a pod that was rejected for its resources', () => {
  it.each<[string, WorldChange, boolean]>([
    ['a new node that is large enough', ofNode(undefined, {}), true],
    ['a new node that is exactly large enough', ofNode(undefined, { cpu: '2', pods: '1' }), true],
    ['a new node that is too small', ofNode(undefined, { cpu: '1' }), false],
    ['a new node without room for pods', ofNode(undefined, { pods: '0' }), false],
    ['a node that is deleted', ofNode({}, undefined), false],
    ['a node that grows', ofNode({ cpu: '3' }, { cpu: '4' }), true],
    ['a node that grows, and is still too small', ofNode({ cpu: '1' }, { cpu: '1500m' }), false],
    ['a node that accepts more pods', ofNode({ pods: '8' }, { pods: '9' }), true],
    ['a node that only changes its labels', ofNode({}, { labels: { a: 'b' } }), false],
    ['a node that shrinks', ofNode({ cpu: '8' }, { cpu: '4' }), false],
    ['a pod that is deleted from its node', ofPod(BOUND, undefined), true],
    ['a pod that terminates', ofPod(BOUND, { ...BOUND, phase: 'Failed' }), true],
    ['a pod that stays', ofPod(BOUND, { ...BOUND, labels: { a: 'b' } }), false],
    ['a pod on a node that then requests less', ofPod(BOUND, { ...BOUND, cpu: '1' }), true],
    ['a pod on a node that then requests more', ofPod(BOUND, { ...BOUND, cpu: '3' }), false],
    ['an unbound pod that then requests less', ofPod({}, { cpu: '1' }), false],
    ['its own requests, which become smaller', { kind: 'pod', before: pod(), after: pod({ cpu: '1' }) }, true],
    ['its own requests, which become larger', { kind: 'pod', before: pod(), after: pod({ cpu: '3' }) }, false],
    ['a pod that is bound', ofPod({}, BOUND), false],
    ['a pod that appears bound', ofPod(undefined, BOUND), false],
    ['an unbound pod that is deleted', ofPod({}, undefined), false],
    ['a nominated pod that is deleted', ofPod({ nominated: 'n' }, undefined), true],
    ['a nominated pod that loses its nomination', ofPod({ nominated: 'n' }, {}), true],
    [
      'a nominated pod that keeps its nomination',
      ofPod({ nominated: 'n' }, { nominated: 'n', labels: { a: 'b' } }),
      false,
    ],
    ['a nominated pod that is bound', ofPod({ nominated: 'n' }, { ...BOUND, nominated: 'n' }), false],
    ['a nominated pod that is bound without its nomination', ofPod({ nominated: 'n' }, BOUND), false],
    [
      'a terminating pod with a nomination that is deleted',
      ofPod({ nominated: 'n', terminating: true }, undefined),
      false,
    ],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('NodeResourcesFit', change)).toBe(expected);
  });
});

it('a pod that needs two resources is helped by a node with both, and by more of either', () => {
  const containers = [{ name: 'c', resources: { requests: { cpu: '2', memory: '5' } } }];
  const change = (before: object | undefined, after: object): WorldChange => {
    const offering = (allocatable: object) =>
      schedulableNode({
        metadata: { name: 'n' },
        status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { pods: '9', ...allocatable } },
      } as unknown as KubeNode);
    return { kind: 'node', before: before && offering(before), after: offering(after) };
  };
  const isHelped = (before: object | undefined, after: object) =>
    helps('NodeResourcesFit', change(before, after), { spec: { containers } });
  expect(isHelped(undefined, { cpu: '2', memory: '4' })).toBe(false);
  expect(isHelped(undefined, { cpu: '2', memory: '5' })).toBe(true);
  expect(isHelped({ cpu: '3', memory: '9' }, { cpu: '4', memory: '9' })).toBe(true);
});

describe('a pod that was rejected for the labels of nodes', () => {
  const parts = { spec: { nodeSelector: { zone: 'a' } } };
  const matching = { labels: { zone: 'a' } };
  it.each<[string, WorldChange, boolean]>([
    ['a new node that matches', ofNode(undefined, matching), true],
    ['a new node that does not', ofNode(undefined, {}), false],
    ['a node that matches now', ofNode({}, matching), true],
    ['a node that matched before', ofNode(matching, { ...matching, cpu: '9' }), false],
    ['a node that is deleted', ofNode(matching, undefined), false],
    ['another pod', ofPod(BOUND, undefined), false],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('NodeAffinity', change, parts)).toBe(expected);
  });
});

describe('a pod that was rejected for taints', () => {
  const tainted = { taints: [{ key: 'k', effect: 'NoSchedule' }] };
  it.each<[string, WorldChange, boolean]>([
    ['a new node without the taint', ofNode(undefined, {}), true],
    ['a new node with it', ofNode(undefined, tainted), false],
    ['a node that loses it', ofNode(tainted, {}), true],
    ['a node that never had it', ofNode({}, { cpu: '9' }), false],
    ['a node that is deleted', ofNode({}, undefined), false],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('TaintToleration', change)).toBe(expected);
  });
});

describe('a pod that was rejected for cordons', () => {
  const cordoned = { unschedulable: true };
  it.each<[string, WorldChange, boolean]>([
    ['a new node', ofNode(undefined, {}), true],
    ['a new node with a cordon', ofNode(undefined, cordoned), false],
    ['the end of a cordon', ofNode(cordoned, {}), true],
    ['a change of another node', ofNode({}, { cpu: '9' }), false],
    ['a node that is deleted', ofNode(cordoned, undefined), false],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('NodeUnschedulable', change)).toBe(expected);
  });
});

describe('a pod that was rejected for features', () => {
  const declaring = { features: ['A'] };
  it.each<[string, WorldChange, boolean]>([
    ['a new node', ofNode(undefined, {}), true],
    ['a node that declares more', ofNode(declaring, { features: ['A', 'B'] }), true],
    ['a node that declares less', ofNode(declaring, {}), true],
    ['a node that declares the same', ofNode(declaring, { ...declaring, cpu: '9' }), false],
    ['a node that is deleted', ofNode(declaring, undefined), false],
    ['a pod that leaves its node', ofPod(BOUND, undefined), false],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('NodeDeclaredFeatures', change)).toBe(expected);
  });
});

describe('a pod that was rejected for host ports', () => {
  it.each<[string, WorldChange, boolean]>([
    ['a pod that frees the port', ofPod({ ...BOUND, hostPort: 80 }, undefined), true],
    ['a pod that frees another port', ofPod({ ...BOUND, hostPort: 81 }, undefined), false],
    ['a pod with the port that stays', ofPod({ ...BOUND, hostPort: 80 }, { ...BOUND, hostPort: 80 }), false],
    ['a new node', ofNode(undefined, {}), true],
    ['a node that changes', ofNode({}, { cpu: '9' }), false],
    ['a node that is deleted', ofNode({}, undefined), false],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('NodePorts', change, { hostPort: 80 })).toBe(expected);
  });
});

it('a pod that names its node is helped by a new node alone', () => {
  expect(helps('NodeName', ofNode(undefined, {}))).toBe(true);
  expect(helps('NodeName', ofNode({}, {}))).toBe(false);
  expect(helps('NodeName', ofNode({}, undefined))).toBe(false);
  expect(helps('NodeName', ofPod(BOUND, undefined))).toBe(false);
});

it('the end of the safety gate is no change of the cluster', () => {
  expect(helps('SafetyGate', ofNode(undefined, {}))).toBe(false);
  expect(helps('SafetyGate', ofPod(BOUND, undefined))).toBe(false);
});

describe('a pod that was rejected for its spread', () => {
  const labels = { app: 'web' };
  const constraint = (more: object = {}) => ({
    topologyKey: 'zone',
    maxSkew: 1,
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: labels },
    ...more,
  });
  const parts = (...more: readonly object[]): PodParts => ({
    labels,
    spec: { topologySpreadConstraints: (more.length === 0 ? [{}] : more).map(constraint) },
  });
  const web = { ...BOUND, labels };

  it.each<[string, WorldChange, boolean]>([
    ['a matching pod that appears on a node', ofPod(undefined, web), true],
    ['a matching pod that is deleted', ofPod(web, undefined), true],
    ['a matching pod that begins to terminate', ofPod(web, { ...web, terminating: true }), true],
    ['a pod that matches now', ofPod(BOUND, web), true],
    ['a matching pod that stays', ofPod(web, { ...web, cpu: '1' }), false],
    ['a matching pod without a node', ofPod(undefined, { labels }), false],
    ['a pod with other labels', ofPod(undefined, BOUND), false],
    ['a pod of another namespace', ofPod(undefined, { ...web, namespace: 'e' }), false],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('PodTopologySpread', change, parts())).toBe(expected);
    expect(helps('PodTopologySpread', change, parts({ whenUnsatisfiable: 'ScheduleAnyway' }))).toBe(false);
  });

  const zone = (value: string) => ({ labels: { zone: value } });
  it.each<[string, WorldChange, boolean]>([
    ['a new node with the key', ofNode(undefined, zone('a')), true],
    ['a new node without the key', ofNode(undefined, {}), false],
    ['a node with the key that is deleted', ofNode(zone('a'), undefined), true],
    ['a node without the key that is deleted', ofNode({}, undefined), false],
    ['a node that moves', ofNode(zone('a'), zone('b')), true],
    ['a node that gets the key', ofNode({}, zone('a')), true],
    ['a node that loses the key', ofNode(zone('a'), {}), true],
    ['a node that stays', ofNode(zone('a'), { ...zone('a'), cpu: '9' }), false],
    [
      'a node that loses a taint',
      ofNode({ ...zone('a'), taints: [{ key: 'k', effect: 'NoSchedule' }] }, zone('a')),
      true,
    ],
  ])('is helped by %s: %s', (_text, change, expected) => {
    expect(helps('PodTopologySpread', change, parts())).toBe(expected);
  });

  it('with several constraints is helped by a change for any of them', () => {
    const other = constraint({ labelSelector: { matchLabels: { app: 'x' } } });
    expect(helps('PodTopologySpread', ofPod(undefined, web), parts({}, other))).toBe(true);
    expect(helps('PodTopologySpread', ofPod(undefined, web), parts(other, {}))).toBe(true);
  });

  it('needs the keys of all its hard constraints, and of no other', () => {
    const change = ofNode(undefined, zone('a'));
    expect(helps('PodTopologySpread', change, parts({}, { topologyKey: 'rack' }))).toBe(false);
    expect(
      helps('PodTopologySpread', change, parts({}, { topologyKey: 'rack', whenUnsatisfiable: 'ScheduleAnyway' })),
    ).toBe(true);
  });
});

describe('a pod that was rejected for the pods of a place', () => {
  const labels = { app: 'db' };
  const term = (more: object = {}) => ({ topologyKey: 'zone', labelSelector: { matchLabels: labels }, ...more });
  const required = (...terms: readonly object[]) => ({ requiredDuringSchedulingIgnoredDuringExecution: terms });
  const near: PodParts = { spec: { affinity: { podAffinity: required(term()) } } };
  const apart: PodParts = { spec: { affinity: { podAntiAffinity: required(term()) } } };
  const db = { ...BOUND, labels };
  const against = (matchLabels: object): PodParts => ({
    ...BOUND,
    spec: { affinity: { podAntiAffinity: required(term({ labelSelector: { matchLabels } })) } },
  });

  it.each<[string, PodParts, WorldChange, boolean]>([
    ['affinity: a matching pod that appears', near, ofPod(undefined, db), true],
    ['affinity: a pod that matches now', near, ofPod(BOUND, db), true],
    ['affinity: a matching pod that matched before', near, ofPod(db, { ...db, cpu: '1' }), false],
    ['affinity: a matching pod without a node', near, ofPod(undefined, { labels }), false],
    ['affinity: a matching pod that is deleted', near, ofPod(db, undefined), false],
    ['affinity: another pod', near, ofPod(undefined, BOUND), false],
    ['anti-affinity: a matching pod that is deleted', apart, ofPod(db, undefined), true],
    ['anti-affinity: a pod that matched before', apart, ofPod(db, BOUND), true],
    ['anti-affinity: a matching pod that stays', apart, ofPod(db, { ...db, cpu: '1' }), false],
    ['anti-affinity: a matching pod that appears', apart, ofPod(undefined, db), false],
    ['anti-affinity of others: such a pod that is deleted', { labels }, ofPod(against(labels), undefined), true],
    [
      'anti-affinity of others: such a pod that stays',
      { labels },
      ofPod(against(labels), { ...against(labels), cpu: '1' }),
      false,
    ],
    ['anti-affinity of others: a pod with another term', { labels }, ofPod(against({ app: 'x' }), undefined), false],
    ['neither: a pod that is deleted', {}, ofPod(db, undefined), false],
  ])('is helped, by %s: %s', (_text, parts, change, expected) => {
    const isHelped = helps('InterPodAffinity', change, parts);
    expect(isHelped).toBe(expected);
  });

  it('is helped by a pod that matches all its terms, not only one', () => {
    const both: PodParts = {
      spec: { affinity: { podAffinity: required(term(), term({ labelSelector: { matchLabels: { tier: 'x' } } })) } },
    };
    expect(helps('InterPodAffinity', ofPod(undefined, db), both)).toBe(false);
    expect(helps('InterPodAffinity', ofPod(undefined, { ...BOUND, labels: { ...labels, tier: 'x' } }), both)).toBe(
      true,
    );
  });

  it('is helped when one of several terms of another pod no longer concerns it', () => {
    const terms = [term({ labelSelector: { matchLabels: { app: 'x' } } }), term()];
    const other: PodParts = { ...BOUND, spec: { affinity: { podAntiAffinity: required(...terms) } } };
    expect(helps('InterPodAffinity', ofPod(other, undefined), { labels })).toBe(true);
  });

  it('is helped by a new node with the keys of all its terms', () => {
    const both: PodParts = { spec: { affinity: { podAffinity: required(term(), term({ topologyKey: 'rack' })) } } };
    expect(helps('InterPodAffinity', ofNode(undefined, { labels: { zone: 'a' } }), both)).toBe(false);
    expect(helps('InterPodAffinity', ofNode(undefined, { labels: { zone: 'a', rack: 'b' } }), both)).toBe(true);
  });

  const zone = (value: string) => ({ labels: { zone: value } });
  it.each<[string, PodParts, WorldChange, boolean]>([
    ['a new node', {}, ofNode(undefined, {}), true],
    ['a node that is deleted', {}, ofNode({}, undefined), false],
    ['a new node without the key of the affinity', near, ofNode(undefined, {}), false],
    ['a new node with the key of the affinity', near, ofNode(undefined, zone('a')), true],
    ['a node that moves, for affinity', near, ofNode(zone('a'), zone('b')), true],
    ['a node that moves, for anti-affinity', apart, ofNode(zone('a'), zone('b')), true],
    ['a node with another label, for affinity', near, ofNode({}, { labels: { x: 'y' } }), false],
    ['a node with another label, for anti-affinity', apart, ofNode({}, { labels: { x: 'y' } }), false],
    ['a node with another label, for the terms of others', {}, ofNode({}, { labels: { x: 'y' } }), true],
    ['a node that stays', {}, ofNode({}, { cpu: '9' }), false],
  ])('is helped by %s', (_text, parts, change, expected) => {
    expect(helps('InterPodAffinity', change, parts)).toBe(expected);
  });

  it('depends on the labels of namespaces', () => {
    const wide: PodParts = {
      spec: { affinity: { podAffinity: required(term({ namespaceSelector: { matchLabels: { team: 'x' } } })) } },
    };
    const change = ofPod(undefined, { ...db, namespace: 'e' });
    expect(helps('InterPodAffinity', change, wide)).toBe(false);
    expect(helps('InterPodAffinity', change, wide, new Map([['e', { team: 'x' }]]))).toBe(true);
  });
});

describe('a change of the rejected pod itself', () => {
  const toleration = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' };
  const tolerating = { spec: { tolerations: [toleration] } };
  const labelled = { labels: { app: 'web' } };
  const spread = (more: object = {}) => ({
    topologySpreadConstraints: [
      {
        topologyKey: 'zone',
        maxSkew: 1,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: labelled.labels },
        ...more,
      },
    ],
  });
  /** One that selects labelled pods, and one that honors taints. */
  const twoSpreads = {
    topologySpreadConstraints: [
      ...spread().topologySpreadConstraints,
      ...spread({ labelSelector: {}, nodeTaintsPolicy: 'Honor' }).topologySpreadConstraints,
    ],
  };
  const nodeTerms = {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }],
        },
      },
    },
  };

  it.each<[PluginName, PodParts, PodParts, boolean]>([
    ['NodeAffinity', { spec: nodeTerms }, { spec: nodeTerms, labels: { a: 'b' } }, false],
    ['NodeAffinity', {}, { spec: nodeTerms }, true],
    ['TaintToleration', {}, tolerating, true],
    ['TaintToleration', tolerating, { ...tolerating, ...labelled }, false],
    ['NodeUnschedulable', {}, tolerating, true],
    ['NodeUnschedulable', {}, { spec: { tolerations: [{ ...toleration, key: 'k' }] } }, false],
    ['NodeUnschedulable', tolerating, tolerating, false],
    ['PodTopologySpread', { spec: spread() }, { spec: spread(), ...labelled }, true],
    ['PodTopologySpread', { spec: spread() }, { spec: spread(), labels: { x: 'y' } }, false],
    ['PodTopologySpread', { spec: twoSpreads }, { spec: twoSpreads, ...labelled }, true],
    ['PodTopologySpread', { spec: twoSpreads }, { spec: { ...twoSpreads, ...tolerating.spec } }, true],
    ['PodTopologySpread', { spec: spread() }, { spec: { ...spread(), ...tolerating.spec } }, false],
    [
      'PodTopologySpread',
      { spec: spread({ nodeTaintsPolicy: 'Honor' }) },
      { spec: { ...spread({ nodeTaintsPolicy: 'Honor' }), ...tolerating.spec } },
      true,
    ],
    [
      'PodTopologySpread',
      { spec: spread({ nodeTaintsPolicy: 'Honor' }) },
      { spec: spread({ nodeTaintsPolicy: 'Honor' }), labels: { x: 'y' } },
      false,
    ],
    ['InterPodAffinity', {}, labelled, true],
    ['InterPodAffinity', {}, tolerating, false],
    ['VolumeBinding', {}, labelled, true],
    ['VolumeBinding', {}, tolerating, true],
    ['VolumeBinding', {}, {}, false],
    ['DynamicResources', {}, labelled, true],
    ['DynamicResources', {}, tolerating, true],
    ['DynamicResources', {}, {}, false],
    ['NodeResourcesFit', {}, labelled, false],
  ])('after %s, from %j to %j, helps: %s', (plugin, before, after, expected) => {
    const change: WorldChange = { kind: 'pod', before: pod(before), after: pod(after) };
    expect(helps(plugin, change)).toBe(expected);
  });

  it('is not its creation, nor its deletion', () => {
    for (const plugin of ['InterPodAffinity', 'TaintToleration', 'VolumeBinding'] as const) {
      expect(helps(plugin, { kind: 'pod', before: undefined, after: pod(labelled) })).toBe(false);
    }
  });

  it('helps if any of the plugins that rejected it says so', () => {
    const change: WorldChange = { kind: 'pod', before: pod(), after: pod(tolerating) };
    const at = { change, namespaces: new Map() };
    expect(mayHelp(pod(), ['InterPodAffinity', 'TaintToleration'], at)).toBe(true);
    expect(mayHelp(pod(), ['InterPodAffinity', 'NodeAffinity'], at)).toBe(false);
    expect(mayHelp(pod(), [], at)).toBe(false);
  });
});

it.each<[string, WorldChange, boolean]>([
  ['a node', ofNode({}, {}), true],
  ['a pod that is bound', ofPod({}, BOUND), true],
  ['a pod that leaves its node', ofPod(BOUND, undefined), true],
  ['a pod that loses its nomination', ofPod({ nominated: 'n' }, {}), true],
  ['a pod that waits', ofPod({}, { labels: { a: 'b' } }), false],
  ['a pod that is created', ofPod(undefined, {}), false],
  ['a pod that has terminated', ofPod({ ...BOUND, phase: 'Failed' }, undefined), false],
])('a change of %s concerns others: %s', (_text, change, expected) => {
  expect(concernsOthers(change)).toBe(expected);
});
