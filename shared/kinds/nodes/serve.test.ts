import { describe, expect, it } from 'vitest';
import { causeText } from '../../kubernetes/status.ts';
import type { KubeNode, KubeObject } from '../types.ts';
import { nodeRoles, nodes } from './serve.ts';

const nowMs = Date.UTC(2001, 1, 3, 4, 5, 11);
const context = { nowMs };
const create = (node: Partial<KubeNode>): KubeObject =>
  nodes.prepareForCreate({ metadata: { name: 'kw-1' }, ...node } as KubeObject, context);
const update = (node: Partial<KubeNode>, old: KubeObject, subresource = ''): KubeObject =>
  nodes.prepareForUpdate({ metadata: { name: 'kw-1' }, ...node } as KubeObject, old, { nowMs, subresource });
const complaints = (object: KubeObject, old?: KubeObject): string[] =>
  nodes
    .validate(object, { operation: old === undefined ? 'create' : 'update', subresource: '', ...(old && { old }) })
    .map(causeText);

const EMPTY_INFO = {
  architecture: '',
  bootID: '',
  containerRuntimeVersion: '',
  kernelVersion: '',
  kubeProxyVersion: '',
  kubeletVersion: '',
  machineID: '',
  operatingSystem: '',
  osImage: '',
  systemUUID: '',
};

describe('a new node', () => {
  it('is stored as an API server prints it, with the taint of a node not seen ready', () => {
    expect(create({ metadata: { name: 'kw-1', labels: { zone: 'a' }, annotations: {} } })).toEqual({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'kw-1', labels: { zone: 'a' } },
      spec: { taints: [{ effect: 'NoSchedule', key: 'node.kubernetes.io/not-ready' }] },
      status: { daemonEndpoints: { kubeletEndpoint: { Port: 0 } }, nodeInfo: EMPTY_INFO },
    });
  });

  it('keeps the status and taints it brings', () => {
    const node = create({
      spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }], podCIDR: '10.1.0.0/24' },
      status: {
        capacity: { cpu: '1000m', memory: '1024Mi' },
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
        declaredFeatures: [],
      },
    });
    expect(node.status).not.toHaveProperty('declaredFeatures');
    expect(node.spec).toEqual({
      taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }],
      podCIDR: '10.1.0.0/24',
      podCIDRs: ['10.1.0.0/24'],
    });
    expect(node.status).toMatchObject({
      capacity: { cpu: '1', memory: '1Gi' },
      allocatable: { cpu: '1', memory: '1Gi' },
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: null, lastTransitionTime: null }],
    });
  });

  it('adds the not-ready taint after those it brings, unless key and effect are there', () => {
    const other = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' as const };
    expect(create({ spec: { taints: [other] } }).spec?.['taints']).toEqual([
      { ...other, timeAdded: '2001-02-03T04:05:11Z' },
      { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
    ]);
  });

  it('follows podCIDR where podCIDRs says something else', () => {
    expect(create({ spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.2.0.0/24'] } }).spec).toMatchObject({
      podCIDR: '10.1.0.0/24',
      podCIDRs: ['10.1.0.0/24'],
    });
  });

  it('is refused with a bad name', () => {
    expect(complaints(create({ metadata: { name: 'Bad_Name' } }))).toEqual([
      expect.stringMatching(/^metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain/),
    ]);
  });

  it('VN-13 is refused with two taints of one key and effect', () => {
    const node = create({
      spec: {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoSchedule', value: 'x' },
        ],
      },
    });
    expect(complaints(node)).toEqual([
      'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule","value":"x"}: taints must be unique by key and effect pair',
    ]);
  });

  it('is refused for each fault of its taints', () => {
    const taints = [
      { key: 'a', effect: 'Never' },
      { key: '', effect: 'NoSchedule' },
      { key: 'b@d!', effect: 'NoSchedule', value: 'b@d' },
      { key: 'b' },
    ];
    expect(complaints(create({ spec: { taints } } as unknown as KubeNode))).toEqual([
      'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      'metadata.taints[1].key: Invalid value: "": name part must be non-empty',
      expect.stringMatching(/^metadata\.taints\[1\]\.key: Invalid value: "": name part must consist/),
      expect.stringMatching(/^metadata\.taints\[2\]\.key: Invalid value: "b@d!": name part must consist/),
      expect.stringMatching(/^metadata\.taints\[2\]\.value: Invalid value: "b@d": a valid label/),
      'metadata.taints[3].effect: Required value',
    ]);
  });

  it('VN-09 is refused with two ranges of one family', () => {
    const range = (podCIDRs: string[]): string[] => complaints(create({ spec: { podCIDRs } }));
    expect(range(['10.0.0.0/24', '10.0.1.0/24'])).toEqual([
      'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family',
    ]);
    expect(range(['10.0.0.0/24', '2001:db8::/64'])).toEqual([]);
    expect(range(['not-a-cidr'])).toEqual([expect.stringMatching(/^spec\.podCIDRs\[0\]: Invalid value: .*valid CIDR/)]);
  });

  it('is refused when it reports an address twice or a quantity that is none', () => {
    const address = { type: 'InternalIP', address: '192.0.2.1' };
    expect(complaints(create({ status: { addresses: [address, address], capacity: { cpu: 'x' } } }))).toEqual([
      expect.stringMatching(/^status\.capacity\.cpu: Invalid value: "x"/),
      expect.stringMatching(/^status\.allocatable\.cpu: Invalid value: "x"/),
      expect.stringMatching(/^status\.addresses\[1\]: Duplicate value/),
    ]);
  });
});

describe('a changed node', () => {
  const old = { ...create({ spec: { providerID: 'aws:///a/i-1' } }), metadata: { name: 'kw-1', uid: 'u' } };

  it('keeps its status when the node is written, and its spec when the status is', () => {
    const main = update({ spec: { unschedulable: true }, status: { phase: 'Running' } }, old);
    expect(main.status).toEqual(old.status);
    expect(main.spec).toEqual({ unschedulable: true });
    const status = update({ spec: { unschedulable: true }, status: { volumesInUse: ['v-1'] } }, old, 'status');
    expect(status.spec).toEqual(old.spec);
    expect(status.status?.['volumesInUse']).toEqual(['v-1']);
  });

  it('has an empty spec when nothing is left in it', () => {
    expect(update({ spec: { taints: [], unschedulable: false } }, old).spec).toEqual({});
  });

  it('keeps what only the server sets', () => {
    expect(update({ metadata: { name: 'kw-1', generation: 9, deletionTimestamp: 't' } }, old).metadata).toEqual({
      name: 'kw-1',
      uid: 'u',
    });
  });

  it('VN-11 may get a pod range once', () => {
    const bare = create({});
    const withRange = update({ spec: { podCIDR: '10.0.0.0/24' } }, bare);
    expect(complaints(withRange, bare)).toEqual([]);
    const texts = [
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      '[]: Forbidden: node updates may only change labels, taints, or capacity',
    ];
    expect(complaints(update({ spec: { podCIDR: '10.0.1.0/24' } }, withRange), withRange)).toEqual(texts);
    expect(complaints(update({ spec: {} }, withRange), withRange)).toEqual(texts);
  });

  it('may get a provider id once, and nothing else of the spec but what is allowed', () => {
    expect(complaints(update({ spec: { providerID: 'other' } }, old), old)).toEqual([
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
      '[]: Forbidden: node updates may only change labels, taints, or capacity',
    ]);
    expect(complaints(update({ spec: { providerID: 'aws:///a/i-1', externalID: 'x' } }, old), old)).toEqual([
      '[]: Forbidden: node updates may only change labels, taints, or capacity',
    ]);
  });
});

describe('the row of a node', () => {
  const row = (node: Partial<KubeNode>): unknown[] =>
    nodes.row(
      { ...create(node), metadata: { name: 'kw-1', creationTimestamp: '2001-02-03T04:05:06Z', ...node.metadata } },
      nowMs,
    );

  it('shows a bare node', () => {
    expect(row({})).toEqual([
      'kw-1',
      'Unknown',
      '<none>',
      '5s',
      '',
      '<none>',
      '<none>',
      '<unknown>',
      '<unknown>',
      '<unknown>',
    ]);
    expect(nodes.columns).toHaveLength(10);
  });

  it.each([
    ['True', 'Ready'],
    ['False', 'NotReady'],
    ['Unknown', 'NotReady'],
  ] as const)('calls Ready=%s %s', (status, text) => {
    const conditions = [{ type: 'Ready', status }];
    expect(row({ status: { conditions } })[1]).toBe(text);
    expect(row({ status: { conditions }, spec: { unschedulable: true } })[1]).toBe(`${text},SchedulingDisabled`);
  });

  it('sorts roles and reads the older label too', () => {
    expect(nodeRoles({ 'node-role.kubernetes.io/zeta': 'x', 'node-role.kubernetes.io/control-plane': '' })).toEqual([
      'control-plane',
      'zeta',
    ]);
    expect(nodeRoles({ 'kubernetes.io/role': 'gateway' })).toEqual(['gateway']);
  });

  it('is selected by name and by spec.unschedulable', () => {
    const node = create({ spec: { unschedulable: true } });
    expect(nodes.selectableFields['spec.unschedulable']?.(node)).toBe('true');
    expect(nodes.selectableFields['spec.unschedulable']?.(create({}))).toBe('false');
    expect(nodes.selectableFields['metadata.name']?.(node)).toBe('kw-1');
  });
});
