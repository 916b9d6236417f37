import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { initialNode, type RegistrationSettings, reconcileNode } from './node-registration.ts';

const ATTACH = 'volumes.kubernetes.io/controller-managed-attach-detach';
const settings: RegistrationSettings = {
  nodeName: 'n1',
  nodeLabels: { site: 'north' },
  providerId: '',
  registerSchedulable: true,
  registerWithTaints: [],
  cloudProvider: '',
  enableControllerAttachDetach: false,
};
const machine = { hostname: 'h1', operatingSystem: 'linux', architecture: 'amd64' };

describe('a new Node', () => {
  it('has the labels of the machine, then those of the configuration', () => {
    const others = { 'node.kubernetes.io/instance-type': 't', site: 'machine' };
    expect(initialNode(settings, { ...machine, others })).toEqual({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'n1',
        labels: {
          'kubernetes.io/hostname': 'h1',
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
          'beta.kubernetes.io/os': 'linux',
          'beta.kubernetes.io/arch': 'amd64',
          'node.kubernetes.io/instance-type': 't',
          site: 'north',
        },
      },
      spec: {},
      status: {},
    });
  });

  it('has what is configured', () => {
    const taint = { key: 'a', value: 'b', effect: 'NoExecute' } as const;
    const node = initialNode(
      { ...settings, providerId: 'p://1', registerWithTaints: [taint], enableControllerAttachDetach: true },
      machine,
    );
    expect([node.metadata.annotations, node.spec]).toEqual([
      { [ATTACH]: 'true' },
      { providerID: 'p://1', taints: [taint] },
    ]);
  });
});

describe('an existing Node', () => {
  const node = (more: { labels?: object; annotations?: object; status?: object } = {}): KubeNode =>
    ({
      kind: 'Node',
      metadata: {
        name: 'n1',
        ...(more.labels && { labels: more.labels }),
        ...(more.annotations && { annotations: more.annotations }),
      },
      spec: { taints: [{ key: 'kept', effect: 'NoSchedule' }] },
      ...(more.status && { status: more.status }),
    }) as KubeNode;
  const corrected = (existing: KubeNode, initial: KubeNode) =>
    reconcileNode(existing, initial, { zeroExtendedResources: false });

  it('has new labels of the machine, and keeps all others', () => {
    const existing = node({ labels: { 'kubernetes.io/os': 'windows', 'kubernetes.io/arch': 'arm64', site: 'x' } });
    const initial = node({
      labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': '', 'kubernetes.io/hostname': '', site: 'y' },
    });
    const { node: now, changed } = corrected(existing, initial);
    expect([changed, now.metadata.labels]).toEqual([true, { 'kubernetes.io/os': 'linux', site: 'x' }]);
    expect([now.spec, now.metadata.annotations, now.status]).toEqual([existing.spec, undefined, undefined]);
    expect(existing.metadata.labels).toMatchObject({ 'kubernetes.io/os': 'windows' });
  });

  it.each([
    [{ a: 'b' }, { [ATTACH]: 'true' }, { a: 'b', [ATTACH]: 'true' }],
    [{ a: 'b', [ATTACH]: 'true' }, {}, { a: 'b' }],
    [{ [ATTACH]: 'false' }, { [ATTACH]: 'true', other: 'x' }, { [ATTACH]: 'true' }],
  ])('has the annotation of attach-detach: %j and %j', (present, wanted, annotations) => {
    const { node: now, changed } = corrected(node({ annotations: present }), node({ annotations: wanted }));
    expect([changed, now.metadata.annotations]).toEqual([true, annotations]);
  });

  describe('its resources', () => {
    const status = (capacity?: object, allocatable: object | undefined = capacity) => ({
      status: { phase: 'x', ...(capacity && { capacity }), ...(allocatable && { allocatable }) },
    });
    const resourcesOf = (existing: KubeNode, initial: KubeNode) => {
      const { node: now, changed } = corrected(existing, initial);
      return changed ? [now.status?.capacity, now.status?.allocatable] : 'unchanged';
    };

    it('are ours when there are none, and otherwise stay', () => {
      const ours = node(status({ cpu: '4' }, { cpu: '3' }));
      expect(resourcesOf(node(), ours)).toEqual([{ cpu: '4' }, { cpu: '3' }]);
      expect(resourcesOf(node(status({ cpu: '1' })), ours)).toBe('unchanged');
      const half = node({ status: { capacity: { cpu: '1' } } });
      expect(resourcesOf(half, ours)).toEqual([{ cpu: '1' }, { cpu: '3' }]);
      expect(corrected(node({ status: { phase: 'x' } }), ours).node.status).toMatchObject({ phase: 'x' });
    });

    it('have the huge pages of the machine, and no others', () => {
      const ours = node(status({ 'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '0' }));
      const gone = node(status({ cpu: '1', 'hugepages-64Ki': '1Mi', 'hugepages-2Mi': '4096Ki', 'hugepages-1Gi': '0' }));
      const now = { cpu: '1', 'hugepages-2Mi': '4096Ki', 'hugepages-1Gi': '0' };
      expect(resourcesOf(gone, ours)).toEqual([now, now]);
      const differing = node(
        status({ 'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '0' }, { 'hugepages-2Mi': '2Mi', 'hugepages-1Gi': '0' }),
      );
      const all = { 'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '0' };
      expect(resourcesOf(differing, ours)).toEqual([all, all]);
      expect(resourcesOf(node(status(all)), ours)).toBe('unchanged');
    });

    it('of plug-ins stay on a node that was not created again', () => {
      expect(resourcesOf(node(status({ 'example.com/gpu': '2' })), node())).toBe('unchanged');
    });
  });
});
