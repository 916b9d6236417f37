import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../kinds/types.ts';
import { NO_AMOUNTS } from './requests.rule.ts';
import { countsOnNode, isPending, normalisedImage, schedulableNode, schedulablePod } from './world.rule.ts';

const pod = (parts: { metadata?: object; spec?: object; status?: object } = {}) =>
  schedulablePod({
    metadata: { namespace: 'shop', name: 'web', uid: 'u', ...parts.metadata },
    spec: { containers: [{ name: 'c' }], ...parts.spec },
    ...(parts.status === undefined ? {} : { status: parts.status }),
  } as unknown as KubePod);
const node = (parts: { metadata?: object; spec?: object; status?: object } = {}) =>
  schedulableNode({
    metadata: { name: 'n', uid: 'u', ...parts.metadata },
    spec: parts.spec,
    status: parts.status,
  } as KubeNode);
const condition = (type: string, status: string, more: object = {}) => ({ type, status, ...more });

describe('a pod', () => {
  it('without any wish has the defaults of the API', () => {
    expect(pod()).toMatchObject({
      key: 'shop/web',
      resourceVersion: 0,
      labels: {},
      priority: 0,
      mayPreempt: true,
      nodeName: '',
      nominatedNodeName: '',
      isTerminating: false,
      isTerminated: false,
      isGated: false,
      isOurs: true,
      isPreempted: false,
      startedAtMs: undefined,
      createdAtMs: 0,
      requests: NO_AMOUNTS,
      hostPorts: [],
      tolerations: [],
      nodeSelector: {},
      nodeTerms: undefined,
      preferredNodeTerms: [],
      affinity: [],
      antiAffinity: [],
      preferredAffinity: [],
      preferredAntiAffinity: [],
      spread: [],
      images: [':latest'],
      containers: 1,
      controllerUid: '',
      claims: [],
      usesResourceClaims: false,
      neededFeatures: [],
      scheduledCondition: undefined,
    });
  });

  it.each<[Parameters<typeof pod>[0], Partial<ReturnType<typeof pod>>]>([
    [
      { metadata: { resourceVersion: '7', creationTimestamp: '1970-01-01T00:00:05Z' } },
      { resourceVersion: 7, createdAtMs: 5_000 },
    ],
    [{ metadata: { deletionTimestamp: '1970-01-01T00:00:05Z' } }, { isTerminating: true }],
    [{ metadata: { ownerReferences: [{ uid: 'a' }, { uid: 'b', controller: true }] } }, { controllerUid: 'b' }],
    [{ metadata: { ownerReferences: [{ uid: 'a', controller: false }] } }, { controllerUid: '' }],
    [{ spec: { priority: -3, preemptionPolicy: 'Never' } }, { priority: -3, mayPreempt: false }],
    [{ spec: { preemptionPolicy: 'PreemptLowerPriority' } }, { mayPreempt: true }],
    [{ spec: { schedulingGates: [{ name: 'g' }] } }, { isGated: true }],
    [{ spec: { schedulerName: 'default-scheduler' } }, { isOurs: true }],
    [{ spec: { schedulerName: 'other' } }, { isOurs: false }],
    [{ spec: { resourceClaims: [{ name: 'gpu' }] } }, { usesResourceClaims: true }],
    [
      { spec: { nodeSelector: { a: 'b' }, tolerations: [{ operator: 'Exists' }] } },
      { nodeSelector: { a: 'b' }, tolerations: [{ operator: 'Exists' }] },
    ],
    [{ spec: { containers: [{ name: 'a' }, { name: 'b' }], initContainers: [{ name: 'i' }] } }, { containers: 3 }],
    [{ status: { phase: 'Succeeded' } }, { isTerminated: true }],
    [{ status: { phase: 'Failed' } }, { isTerminated: true }],
    [{ status: { phase: 'Running', startTime: '1970-01-01T00:00:09Z' } }, { isTerminated: false, startedAtMs: 9_000 }],
    [{ status: { nominatedNodeName: 'n' } }, { nominatedNodeName: 'n' }],
    [
      { status: { conditions: [condition('DisruptionTarget', 'True', { reason: 'PreemptionByScheduler' })] } },
      { isPreempted: true },
    ],
    [
      { status: { conditions: [condition('DisruptionTarget', 'False', { reason: 'PreemptionByScheduler' })] } },
      { isPreempted: false },
    ],
    [
      { status: { conditions: [condition('DisruptionTarget', 'True', { reason: 'EvictionByEvictionAPI' })] } },
      { isPreempted: false },
    ],
    [
      { status: { conditions: [condition('Other', 'True', { reason: 'PreemptionByScheduler' })] } },
      { isPreempted: false },
    ],
    [
      {
        status: {
          conditions: [
            condition('Ready', 'True'),
            condition('PodScheduled', 'False', { reason: 'Unschedulable', message: 'm' }),
          ],
        },
      },
      { scheduledCondition: { status: 'False', reason: 'Unschedulable', message: 'm' } },
    ],
    [
      { status: { conditions: [condition('PodScheduled', 'True')] } },
      { scheduledCondition: { status: 'True', reason: '', message: '' } },
    ],
  ])('%j is %j', (parts, expected) => {
    expect(pod(parts)).toMatchObject(expected);
  });

  it('needs the claims of its volumes, its own ones included', () => {
    const volumes = [
      { name: 'data', persistentVolumeClaim: { claimName: 'stored' } },
      { name: 'scratch', ephemeral: {} },
      { name: 'tmp', emptyDir: {} },
    ];
    expect(pod({ spec: { volumes } }).claims).toEqual(['stored', 'web-scratch']);
    expect(pod({ metadata: { name: 'x'.repeat(250) }, spec: { volumes: volumes.slice(1) } }).claims).toEqual([
      `${'x'.repeat(250)}-sc`,
    ]);
  });

  it('needs the images of all containers and volumes', () => {
    const spec = {
      containers: [{ name: 'c', image: 'app:1' }],
      initContainers: [{ name: 'i', image: 'init' }],
      volumes: [{ name: 'v', image: { reference: 'data' } }, { name: 'w', image: {} }, { name: 'x' }],
    };
    expect(pod({ spec }).images).toEqual(['init:latest', 'app:1', 'data:latest']);
  });

  it('has its constraints of spread with the defaults of the API', () => {
    const labels = { app: 'web', version: '2' };
    const of = (more: object) =>
      pod({
        metadata: { labels },
        spec: {
          topologySpreadConstraints: [
            {
              topologyKey: 'zone',
              maxSkew: 2,
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: { app: 'web' } },
              ...more,
            },
          ],
        },
      }).spread[0]!;
    expect(of({})).toMatchObject({
      topologyKey: 'zone',
      maxSkew: 2,
      minDomains: 1,
      isHard: true,
      honorsAffinity: true,
      honorsTaints: false,
    });
    expect(of({ minDomains: 3, whenUnsatisfiable: 'ScheduleAnyway' })).toMatchObject({ minDomains: 3, isHard: false });
    expect(of({ nodeAffinityPolicy: 'Ignore', nodeTaintsPolicy: 'Honor' })).toMatchObject({
      honorsAffinity: false,
      honorsTaints: true,
    });
    expect(of({ nodeAffinityPolicy: 'Honor', nodeTaintsPolicy: 'Ignore' })).toMatchObject({
      honorsAffinity: true,
      honorsTaints: false,
    });
    expect(of({}).selector.matches({ app: 'web' })).toBe(true);
    expect(of({ matchLabelKeys: ['version'] }).selector.matches({ app: 'web' })).toBe(false);
    expect(of({ matchLabelKeys: ['version'] }).selector.matches(labels)).toBe(true);
  });

  it('has each term of affinity in its own list, with its weight', () => {
    const term = (topologyKey: string) => ({ topologyKey, labelSelector: {} });
    const affinity = (prefix: string) => ({
      requiredDuringSchedulingIgnoredDuringExecution: [term(`${prefix}-must`)],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 4, podAffinityTerm: term(`${prefix}-may`) }],
    });
    const nodeSelectorTerms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }];
    const preferences = [{ weight: 1, preference: nodeSelectorTerms[0]! }];
    const nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
      preferredDuringSchedulingIgnoredDuringExecution: preferences,
    };
    const found = pod({
      spec: { affinity: { nodeAffinity, podAffinity: affinity('with'), podAntiAffinity: affinity('without') } },
    });
    expect(found.affinity.map(({ topologyKey }) => topologyKey)).toEqual(['with-must']);
    expect(found.antiAffinity.map(({ topologyKey }) => topologyKey)).toEqual(['without-must']);
    expect(found.preferredAffinity).toMatchObject([
      { weight: 4, term: { topologyKey: 'with-may', namespaces: new Set(['shop']) } },
    ]);
    expect(found.preferredAntiAffinity).toMatchObject([{ weight: 4, term: { topologyKey: 'without-may' } }]);
    expect(found).toMatchObject({ nodeTerms: nodeSelectorTerms, preferredNodeTerms: preferences });
    const withoutTerms = pod({ spec: { affinity: { podAffinity: {}, podAntiAffinity: {} } } });
    expect([withoutTerms.affinity, withoutTerms.preferredAntiAffinity]).toEqual([[], []]);
  });

  it('counts on its node while it is bound and has not ended', () => {
    const bound = { nodeName: 'n' };
    expect(countsOnNode(pod({ spec: bound }))).toBe(true);
    expect(countsOnNode(pod({ spec: bound, metadata: { deletionTimestamp: 'x' } }))).toBe(true);
    expect(countsOnNode(pod({ spec: bound, status: { phase: 'Failed' } }))).toBe(false);
    expect(countsOnNode(pod())).toBe(false);
  });

  it('waits for this scheduler while it is unbound, and neither deleted nor ended', () => {
    expect(isPending(pod())).toBe(true);
    expect(isPending(pod({ spec: { schedulingGates: [{ name: 'g' }] } }))).toBe(true);
    expect(isPending(pod({ spec: { nodeName: 'n' } }))).toBe(false);
    expect(isPending(pod({ spec: { schedulerName: 'other' } }))).toBe(false);
    expect(isPending(pod({ metadata: { deletionTimestamp: 'x' } }))).toBe(false);
    expect(isPending(pod({ status: { phase: 'Failed' } }))).toBe(false);
  });
});

it.each([
  ['app', 'app:latest'],
  ['app:1', 'app:1'],
  ['host:5000/app', 'host:5000/app:latest'],
  ['host:5000/app:2', 'host:5000/app:2'],
  ['app@sha256:00', 'app@sha256:00'],
])('the image %s is %s on a node', (name, normalised) => {
  expect(normalisedImage(name)).toBe(normalised);
});

describe('a node', () => {
  const ready = (status: string) => ({ conditions: [condition('Ready', status)] });
  const twin = (key: string) => ({ key: `node.kubernetes.io/${key}`, effect: 'NoSchedule' });

  it('without status offers nothing', () => {
    expect(node()).toEqual({
      name: 'n',
      uid: 'u',
      resourceVersion: 0,
      labels: {},
      zone: '',
      isUnschedulable: false,
      taints: [twin('not-ready')],
      allocatable: NO_AMOUNTS,
      podsMax: 0,
      images: new Map(),
      declaredFeatures: [],
    });
  });

  it('offers what its status lists', () => {
    const images = [{ names: ['a:1', 'b@x'], sizeBytes: 9 }, { sizeBytes: 8 }, { names: ['c:1'] }];
    const found = node({
      metadata: { resourceVersion: '4', labels: { 'topology.kubernetes.io/zone': 'z' } },
      spec: { unschedulable: true },
      status: { ...ready('True'), allocatable: { cpu: '2', memory: '5', pods: '11' }, images },
    });
    expect(found).toMatchObject({ resourceVersion: 4, isUnschedulable: true, podsMax: 11, zone: 'z', taints: [] });
    expect(found.allocatable).toEqual({ ...NO_AMOUNTS, cpu: 2_000, memory: 5 });
    expect([...found.images]).toEqual([
      ['a:1', 9],
      ['b@x', 9],
      ['c:1', 0],
    ]);
  });

  it('has a hub if its machine runs an agent', () => {
    const annotations = { 'nodekeeper.dev/site-hub': 'hub-1' };
    const hubOf = (kubeletVersion: string) =>
      node({ metadata: { annotations }, status: { nodeInfo: { kubeletVersion } } }).siteHub;
    expect(hubOf('v1.36.2-nodekeeper.1')).toBe('hub-1');
    expect(hubOf('v1.36.2')).toBeUndefined();
  });

  it('that is not Ready has the taint of it once, stored or not', () => {
    const own = { key: 'k', effect: 'NoSchedule' };
    const taintsOf = (status: string, taints: object[]) => node({ spec: { taints }, status: ready(status) }).taints;
    expect(taintsOf('True', [own])).toEqual([own]);
    expect(taintsOf('False', [own])).toEqual([own, twin('not-ready')]);
    expect(taintsOf('Unknown', [own])).toEqual([own, twin('unreachable')]);
    expect(taintsOf('Unknown', [twin('unreachable')])).toEqual([twin('unreachable')]);
    expect(taintsOf('Unknown', [{ ...twin('unreachable'), effect: 'NoExecute' }])).toHaveLength(2);
  });
});
