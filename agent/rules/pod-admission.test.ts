import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { type Admission, admitPod, podRequests } from './pod-admission.ts';

const node: KubeObject = {
  metadata: { name: 'edge-1', labels: { 'kubernetes.io/os': 'linux', site: 'harbour', rank: '7' } },
  spec: {},
  status: { allocatable: { cpu: '2', memory: '4Gi', pods: '3', 'ephemeral-storage': '10Gi' } },
};

const asking = (requests: Record<string, string>, spec: Record<string, unknown> = {}): KubeObject => ({
  metadata: { name: 'p', namespace: 'default' },
  spec: { nodeName: 'edge-1', containers: [{ name: 'c', resources: { requests } }], ...spec },
});

const admit = (pod: KubeObject, over: { node?: KubeObject; others?: KubeObject[] } = {}): Admission =>
  admitPod({
    pod,
    node: over.node ?? node,
    others: over.others ?? [],
    operatingSystem: 'linux',
    declaredFeatures: ['A'],
  });

const reasonOf = (admission: Admission): string => (admission.kind === 'admitted' ? 'admitted' : admission.reason);

it('refuses a pod that needs what this node does not declare', () => {
  expect(admit(asking({}, { hostNetwork: true, hostUsers: false }))).toEqual({
    kind: 'refused',
    reason: 'PodFeatureUnsupported',
    message: 'Pod requires node features that are not available: UserNamespacesHostNetworkSupport',
  });
  expect(admit(asking({}, { hostNetwork: true, hostUsers: true })).kind).toBe('admitted');
});

it('refuses a pod that may have no groups of its image, as a node without that feature', () => {
  expect(admit(asking({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } }))).toEqual({
    kind: 'refused',
    reason: 'SupplementalGroupsPolicyNotSupported',
    message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
  });
  expect(admit(asking({}, { securityContext: { supplementalGroupsPolicy: 'Merge' } })).kind).toBe('admitted');
});

describe('room on the node', () => {
  it('admits what just fits beside the others', () => {
    expect(reasonOf(admit(asking({ cpu: '500m', memory: '1Gi' }), { others: [asking({ cpu: '1500m' })] }))).toBe(
      'admitted',
    );
  });

  it('refuses a thousandth of a core too much, and says the figures', () => {
    expect(admit(asking({ cpu: '501m' }), { others: [asking({ cpu: '1500m' })] })).toEqual({
      kind: 'refused',
      reason: 'OutOfcpu',
      message: "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000",
    });
  });

  it('has no more of it because another pod asks for less than nothing', () => {
    expect(reasonOf(admit(asking({ cpu: '3' }), { others: [asking({ cpu: '-2' })] }))).toBe('OutOfcpu');
  });

  it.each([
    [{ memory: '5Gi' }, 'OutOfmemory'],
    [{ 'ephemeral-storage': '11Gi' }, 'OutOfephemeral-storage'],
    [{ cpu: '3', memory: '5Gi' }, 'OutOfcpu'],
    [{ 'example.com/unknown': '1' }, 'admitted'],
  ])('of %j it says %s', (requests, reason) => {
    expect(reasonOf(admit(asking(requests)))).toBe(reason);
  });

  it.each<[Record<string, string>, string]>([
    [{ 'ephemeral-storage': '11Gi', memory: '5Gi' }, 'OutOfmemory'],
    [{ 'example.com/b': '3', 'ephemeral-storage': '11Gi' }, 'OutOfephemeral-storage'],
    [{ 'example.com/b': '3', 'example.com/a': '2' }, 'OutOfexample.com/a'],
    [{ 'example.com/b': '2', 'example.com/a': '1' }, 'admitted'],
    [{ 'example.com/b': '3' }, 'OutOfexample.com/b'],
    // Others have too much of it already. That is no matter of a pod that wants none.
    [{ 'example.com/a': '0' }, 'admitted'],
  ])('of %j on a node with devices it says %s', (requests, reason) => {
    const allocatable = { ...(node.status?.['allocatable'] as object), 'example.com/a': '1', 'example.com/b': '2' };
    const others = requests['example.com/a'] === '0' ? [asking({ 'example.com/a': '5' })] : [];
    expect(reasonOf(admit(asking(requests), { node: { ...node, status: { allocatable } }, others }))).toBe(reason);
  });

  it('counts places before anything else', () => {
    expect(admit(asking({ cpu: '9' }), { others: [asking({}), asking({}), asking({})] })).toEqual({
      kind: 'refused',
      reason: 'OutOfpods',
      message: "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    });
  });

  it('counts the largest moment of the start, sidecars for good, and the overhead', () => {
    const pod = asking(
      { cpu: '200m' },
      {
        overhead: { cpu: '10m' },
        initContainers: [
          { name: 'side', restartPolicy: 'Always', resources: { requests: { cpu: '100m' } } },
          { name: 'prepare', resources: { requests: { cpu: '300m' } } },
        ],
      },
    );
    expect(podRequests(pod).get('cpu')).toBe(410n);
  });
});

describe('demands of the pod on the node', () => {
  const affinity = (expression: Record<string, unknown>) => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [expression] }] },
      },
    },
  });

  it.each([
    [{ nodeSelector: { site: 'harbour' } }, 'admitted'],
    [{ nodeSelector: { site: 'hill' } }, 'NodeAffinity'],
    [{ nodeSelector: { 'kubernetes.io/os': 'windows' } }, 'NodeAffinity'],
    [affinity({ key: 'site', operator: 'In', values: ['hill', 'harbour'] }), 'admitted'],
    [affinity({ key: 'site', operator: 'NotIn', values: ['harbour'] }), 'NodeAffinity'],
    [affinity({ key: 'absent', operator: 'NotIn', values: ['harbour'] }), 'admitted'],
    [affinity({ key: 'rank', operator: 'Gt', values: ['6'] }), 'admitted'],
    [affinity({ key: 'rank', operator: 'Lt', values: ['7'] }), 'NodeAffinity'],
    [affinity({ key: 'rank', operator: 'Gt', values: ['six'] }), 'NodeAffinity'],
    [affinity({ key: 'rank', operator: 'Gt', values: ['5', '6'] }), 'NodeAffinity'],
    [affinity({ key: 'site', operator: 'Gt', values: ['6'] }), 'NodeAffinity'],
    [affinity({ key: 'rank', operator: 'Odd', values: [] }), 'NodeAffinity'],
    [{ os: { name: 'windows' } }, 'PodOSNotSupported'],
    [{ os: { name: 'linux' } }, 'admitted'],
  ])('%j: %s', (spec, reason) => {
    expect(reasonOf(admit(asking({}, spec)))).toBe(reason);
  });

  it('says what the predicate was', () => {
    expect(admit(asking({}, { nodeSelector: { site: 'hill' } }))).toMatchObject({
      message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    });
  });

  it('refuses a label of another operating system', () => {
    const pod = asking({});
    pod.metadata.labels = { 'kubernetes.io/os': 'windows' };
    expect(reasonOf(admit(pod))).toBe('PodOSSelectorNodeLabelDoesNotMatch');
  });

  it('admits only one pod per port of the machine', () => {
    const on = (hostIP: string, hostPort: number) =>
      asking({}, { containers: [{ name: 'c', ports: [{ hostPort, hostIP, containerPort: 80 }] }] });
    expect(reasonOf(admit(on('', 80), { others: [on('127.0.0.1', 80)] }))).toBe('NodePorts');
    expect(reasonOf(admit(on('127.0.0.2', 80), { others: [on('127.0.0.1', 80)] }))).toBe('admitted');
  });
});

describe('taints of the node', () => {
  const tainted = (effect: string): KubeObject => ({ ...node, spec: { taints: [{ key: 'repair', effect }] } });

  it('keeps out who does not tolerate NoExecute, and minds no other effect', () => {
    expect(admit(asking({}), { node: tainted('NoExecute') })).toEqual({
      kind: 'refused',
      reason: 'TaintToleration',
      message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    });
    expect(reasonOf(admit(asking({}), { node: tainted('NoSchedule') }))).toBe('admitted');
    const patient = asking({}, { tolerations: [{ key: 'repair', operator: 'Exists' }] });
    expect(reasonOf(admit(patient, { node: tainted('NoExecute') }))).toBe('admitted');
  });

  it('keeps no static pod out', () => {
    const pod = asking({});
    pod.metadata.annotations = { 'kubernetes.io/config.source': 'file' };
    expect(reasonOf(admit(pod, { node: tainted('NoExecute') }))).toBe('admitted');
  });
});

describe('a node that is not meant', () => {
  it('refuses a pod that is bound to another node', () => {
    expect(admit(asking({}, { nodeName: 'edge-2' }))).toEqual({
      kind: 'refused',
      reason: 'NodeName',
      message: "Predicate NodeName failed: node(s) didn't match the requested node name",
    });
    expect(reasonOf(admit(asking({}, { nodeName: '' })))).toBe('admitted');
  });

  it('refuses a pod of another operating system', () => {
    const labelled = asking({});
    labelled.metadata.labels = { 'kubernetes.io/os': 'windows' };
    expect(reasonOf(admit(labelled))).toBe('PodOSSelectorNodeLabelDoesNotMatch');
    expect(reasonOf(admit(asking({}, { os: { name: 'windows' } })))).toBe('PodOSNotSupported');
    expect(reasonOf(admit(asking({}, { os: { name: 'linux' } })))).toBe('admitted');
  });
});

describe('ports of the machine', () => {
  type Port = Record<string, unknown>;
  const withPorts = (ports: readonly Port[], spec: Record<string, unknown> = {}) =>
    asking({}, { containers: [{ name: 'c', ports }], ...spec });
  const sidecar = (restartPolicy: string) => ({
    containers: [{ name: 'c' }],
    initContainers: [{ name: 'i', restartPolicy, ports: [{ hostPort: 80 }] }],
  });

  it.each<[string, KubeObject, KubeObject, string]>([
    ['of two protocols', withPorts([{ hostPort: 53, protocol: 'UDP' }]), withPorts([{ hostPort: 53 }]), 'admitted'],
    ['TCP by default', withPorts([{ hostPort: 53, protocol: 'TCP' }]), withPorts([{ hostPort: 53 }]), 'NodePorts'],
    ['of a sidecar', asking({}, sidecar('Always')), withPorts([{ hostPort: 80 }]), 'NodePorts'],
    ['of an init container', asking({}, sidecar('OnFailure')), withPorts([{ hostPort: 80 }]), 'admitted'],
    ['0: none', withPorts([{ hostPort: 0 }]), withPorts([{ hostPort: 0 }]), 'admitted'],
    ['1: one', withPorts([{ hostPort: 1 }]), withPorts([{ hostPort: 1 }]), 'NodePorts'],
    [
      'on any address',
      withPorts([{ hostPort: 9, hostIP: '0.0.0.0' }]),
      withPorts([{ hostPort: 9, hostIP: '::1' }]),
      'NodePorts',
    ],
    [
      'on any address of IPv6',
      withPorts([{ hostPort: 9, hostIP: '10.0.0.1' }]),
      withPorts([{ hostPort: 9, hostIP: '::' }]),
      'NodePorts',
    ],
    [
      'on one address',
      withPorts([{ hostPort: 9, hostIP: '10.0.0.1' }]),
      withPorts([{ hostPort: 9, hostIP: '10.0.0.1' }]),
      'NodePorts',
    ],
    [
      'the second of two',
      withPorts([{ hostPort: 7 }, { hostPort: 9 }]),
      withPorts([{ hostPort: 8 }, { hostPort: 9 }]),
      'NodePorts',
    ],
  ])('%s', (_, pod, other, reason) => {
    expect(reasonOf(admit(pod, { others: [asking({}), other] }))).toBe(reason);
  });
});

describe('a node that reports less', () => {
  const nodeWith = (allocatable: Record<string, string>): KubeObject => ({ ...node, status: { allocatable } });

  it('has no place without an amount of pods', () => {
    expect(admit(asking({}), { node: nodeWith({ cpu: '2' }) })).toMatchObject({
      reason: 'OutOfpods',
      message: "Node didn't have enough resource: pods, requested: 1, used: 0, capacity: 0",
    });
  });

  it('has none of the resources of every machine that it does not report', () => {
    expect(admit(asking({ memory: '1' }), { node: nodeWith({ pods: '1' }) })).toMatchObject({
      reason: 'OutOfmemory',
      message: "Node didn't have enough resource: memory, requested: 1, used: 0, capacity: 0",
    });
  });
});

it('the requests of a pod as a whole replace those of its containers', () => {
  const pod = asking(
    { cpu: '2', memory: '1Ki' },
    { resources: { requests: { cpu: '500m' } }, overhead: { cpu: '1m' } },
  );
  expect(podRequests(pod)).toEqual(
    new Map([
      ['cpu', 501n],
      ['memory', 1_024n],
    ]),
  );
});
