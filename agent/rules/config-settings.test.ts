import { describe, expect, it } from 'vitest';
import type { AgentConfig } from '../config.ts';
import { checkConfig, describeConfigFault, statusFrequencies } from './config-settings.ts';

const KUBELET = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };
const AGENT = { apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'AgentConfiguration' };
const ENDPOINT = { endpoint: 'https://api.example' };
const at = (path: readonly (string | number)[]) => `file:${path.join('.')}`;

const check = (values: readonly unknown[], flags: Readonly<Record<string, string>> = {}) =>
  checkConfig({ documents: values.map((value) => ({ value, at })), flags, hostname: 'edge-1' });
const withKubelet = (fields: object) =>
  check([
    { ...KUBELET, ...fields },
    { ...AGENT, ...ENDPOINT },
  ]);
const withAgent = (fields: object) => check([{ ...AGENT, ...ENDPOINT, ...fields }]);
const faultsOf = ({ faults }: ReturnType<typeof check>): string[] => faults.map(describeConfigFault);

describe('documents of a configuration', () => {
  it('may be empty, and their fields null, which leaves them unset', () => {
    const { config, faults } = check([null, undefined, { ...AGENT, ...ENDPOINT, nodeIP: null, healthzPort: null }]);
    expect([faults, config.nodeIp, config.healthzPort]).toEqual([[], '', 10_248]);
  });

  it('are maps of a known kind', () => {
    expect(faultsOf(check(['text', { kind: 'Pod' }, { ...AGENT, ...ENDPOINT }]))).toEqual([
      'file:: expected a map of fields',
      'file:kind: kind "Pod": expected KubeletConfiguration or AgentConfiguration',
    ]);
  });

  it('override each other in the order of their kinds, and flags override both', () => {
    const agent = { ...AGENT, ...ENDPOINT, healthzPort: 1_002, providerID: 'agent' };
    const kubelet = { ...KUBELET, healthzPort: 1_001, providerID: 'kubelet' };
    const { config, faults } = check([agent, kubelet], { 'healthz-port': '1003' });
    expect([faults, config.healthzPort, config.providerId]).toEqual([[], 1_003, 'agent']);
  });

  it.each([
    [
      'a field of the other kind',
      { ...KUBELET, runtime: 'exec' },
      'runtime: no field of KubeletConfiguration; it belongs to AgentConfiguration',
    ],
    [
      'a field of the other kind',
      { ...AGENT, maxPods: 5 },
      'maxPods: no field of AgentConfiguration; it belongs to KubeletConfiguration',
    ],
    [
      'a field that is nearly one',
      { ...KUBELET, maxpods: 5 },
      'maxpods: no field of KubeletConfiguration; did you mean maxPods',
    ],
    ['a field like none', { ...AGENT, toString: 5 }, 'toString: no field of AgentConfiguration'],
    ['a field that a kubelet has', { ...AGENT, syncFrequency: '1s' }, 'syncFrequency: no field of AgentConfiguration'],
  ])('may not have %s', (_what, document, fault) => {
    const [field] = fault.split(':');
    expect(faultsOf(check([document, { ...KUBELET }], { endpoint: ENDPOINT.endpoint }))[0]).toBe(
      `file:${field}: ${fault}`,
    );
  });

  it('name the place of a fault within a value, but no secret', () => {
    const taints = [{ key: 'a', effect: 7 }];
    expect(faultsOf(withKubelet({ registerWithTaints: taints, memorySwap: { other: 'x' } }))).toEqual([
      'file:registerWithTaints.0.effect: registerWithTaints[0].effect 7: expected text',
      'file:memorySwap.other: memorySwap.other: no such field',
    ]);
    expect(faultsOf(withAgent({ token: 5, bootstrapToken: 6 }))).toEqual([
      'file:token: token: expected text',
      'file:bootstrapToken: bootstrapToken: expected text',
    ]);
  });

  it('may have fields without effect, which are a warning', () => {
    const { faults, warnings } = withKubelet({ syncFrequency: '1m', featureGates: { NodeSwap: true, Other: true } });
    expect([faults, warnings]).toEqual([
      [],
      [
        'known fields of a kubelet that this agent does not act on: syncFrequency (file:syncFrequency), ' +
          'featureGates.Other (file:featureGates.Other)',
      ],
    ]);
    expect(withKubelet({}).warnings).toEqual([]);
  });
});

it('a flag that does not exist is a fault, also one with the name of a property of all objects', () => {
  const flags = { endpoint: ENDPOINT.endpoint, colour: '1', constructor: '1' };
  expect(faultsOf(check([], flags))).toEqual(['--colour: no such flag', '--constructor: no such flag']);
  expect(faultsOf(check([], { ...ENDPOINT, 'max-pods': '-1' }))).toEqual([
    'command line: --max-pods "-1": expected a whole number from 0 to 1000000',
  ]);
});

it.each<[object, string]>([
  [{ keyRotationPeriod: '9999ms' }, 'keyRotationPeriod: expected 0s, which is never, or at least 10s'],
  [{ updateCheckPeriod: '9999ms' }, 'updateCheckPeriod: expected at least 10s'],
  [{ rootDirectory: 'var' }, 'rootDirectory "var": expected an absolute path'],
  [{ hubEndpoint: 'http://hub' }, 'hubEndpoint "http://hub": expected the https URL of the hub of the site'],
  [{ runtime: 'docker' }, 'runtime "docker": expected one of "none", "exec", "podman"'],
  [{ rememberPods: 'some' }, 'rememberPods "some": expected one of "all", "withoutSecrets", "none"'],
  [{ cloudProvider: 'aws' }, 'cloudProvider "aws": expected one of "", "external"'],
  [{ clusterId: 'a b' }, 'clusterId "a b": '],
  [{ hostnameOverride: 'a_b' }, 'node name "a_b": '],
  [{ nodeIP: '10.0.0.7,10.0.0.8' }, 'nodeIP "10.0.0.7,10.0.0.8": '],
  [{ nodeLabels: { 'a b': 'c' } }, 'nodeLabels: '],
  [{ token: 't', tokenFile: '/t' }, 'tokenFile: expected either this or token, not both'],
  [{ services: [] }, 'services []: expected {enabled, endpoints, dnsAddress}'],
  [{ services: { dnsAddress: 7 } }, 'services.dnsAddress 7: expected an address that pods can reach'],
  [{ heartbeatCertificateAuthority: 'PEM' }, 'heartbeatEndpoint: expected the https URL of the relay of the site CA'],
  [{ heartbeatEndpoint: 'https://r/', token: 't' }, 'heartbeatEndpoint: expected no configured token: '],
  [{ heartbeatEndpoint: 'https://r/', tokenFile: '/t' }, 'heartbeatEndpoint: expected no configured token: '],
])('%j of the agent is one fault', (fields, start) => {
  const faults = withAgent(fields).faults.map(({ message }) => message);
  expect(faults).toEqual([expect.stringContaining(start)]);
  expect(faults[0]?.startsWith(start)).toBe(true);
});

it.each<[object, string]>([
  [{ clusterDomain: 'a_b' }, 'clusterDomain "a_b": '],
  [{ cgroupRoot: 'a' }, 'cgroupRoot "a": expected an absolute path below the root of cgroup v2'],
  [{ cgroupRoot: '/a/..' }, 'cgroupRoot "/a/..": expected an absolute path below the root of cgroup v2'],
  [{ topologyManagerPolicy: 'best' }, 'unknown policy: "best"'],
  [{ topologyManagerPolicy: 'restricted', topologyManagerScope: 'node' }, 'unknown scope: "node"'],
  [{ memorySwap: { swapBehavior: 'All' } }, 'invalid configuration: memorySwap.swapBehavior "All" must be one of: '],
  [
    { memorySwap: { swapBehavior: 'NoSwap' }, featureGates: { NodeSwap: false } },
    'invalid configuration: memorySwap.swapBehavior cannot be set when the feature gate NodeSwap is off',
  ],
  [{ nodeLeaseDurationSeconds: -1 }, 'invalid configuration: nodeLeaseDurationSeconds must be greater than 0'],
  [
    { evictionSoft: { 'memory.available': '1Gi' } },
    'grace period must be specified for the soft eviction threshold memory.available',
  ],
  [{ evictionSoft: { 'memory.available': '1Gi' }, evictionSoftGracePeriod: 5 }, 'evictionSoftGracePeriod 5: '],
  [{ registerWithTaints: [{ key: 'a b', effect: 'NoSchedule' }] }, 'registerWithTaints'],
  [{ shutdownGracePeriod: '10s', shutdownGracePeriodCriticalPods: '20s' }, ''],
  [{ shutdownGracePeriod: 10, shutdownGracePeriodCriticalPods: '20s' }, 'shutdownGracePeriod 10: '],
  [{ shutdownGracePeriod: '5s', shutdownGracePeriodCriticalPods: 20 }, 'shutdownGracePeriodCriticalPods 20: '],
  [{ nodeStatusUpdateFrequency: '999ms' }, 'nodeStatusUpdateFrequency: expected at least 1s'],
])('%j of a kubelet is one fault', (fields, start) => {
  const faults = withKubelet(fields).faults.map(({ message }) => message);
  expect(faults).toHaveLength(1);
  expect(faults[0]?.startsWith(start)).toBe(true);
});

it.each<[object, Partial<AgentConfig>]>([
  [
    { keyRotationPeriod: '0s', updateCheckPeriod: '0s' },
    { keyRotationPeriodMs: 0, updateCheckPeriodMs: 1_800_000 },
  ],
  [
    { keyRotationPeriod: '10s', updateCheckPeriod: '10s' },
    { keyRotationPeriodMs: 10_000, updateCheckPeriodMs: 10_000 },
  ],
  [{ endpoint: 'https://a.example/prod//' }, { endpoint: 'https://a.example/prod' }],
  [{ hubEndpoint: 'https://hub:6443//' }, { hubEndpoint: 'https://hub:6443' }],
  [{ heartbeatEndpoint: 'https://r:7443/' }, { heartbeatEndpoint: 'https://r:7443' }],
  [{ hostnameOverride: ' Edge-2 ' }, { nodeName: 'edge-2' }],
  [{ runtime: 'exec', nodeLabels: { a: 'b' } }, { nodeLabels: { 'nodekeeper.dev/runtime': 'exec', a: 'b' } }],
  [
    { services: { enabled: true } },
    { services: { endpoints: 'zone', dnsAddress: '169.254.20.10', clusterDomain: 'cluster.local' } },
  ],
])('%j of the agent is read', (fields, expected) => {
  const { config, faults } = withAgent(fields);
  expect(faults).toEqual([]);
  expect(config).toMatchObject(expected);
});

it.each<[object, Partial<AgentConfig>]>([
  [{ enforceNodeAllocatable: ['none'] }, { enforceNodeAllocatable: false }],
  [{ enforceNodeAllocatable: ['pods', 'kube-reserved'] }, { enforceNodeAllocatable: true }],
  [
    {},
    { enforceNodeAllocatable: true, topologyManagerPolicy: 'none', topologyManagerScope: 'container', cgroupRoot: '' },
  ],
  [
    { topologyManagerPolicy: 'restricted', topologyManagerScope: 'pod' },
    { topologyManagerPolicy: 'restricted', topologyManagerScope: 'pod' },
  ],
  [{ podPidsLimit: 0 }, { podPidsMax: undefined }],
  [{ podPidsLimit: 1 }, { podPidsMax: 1 }],
  [{ cgroupRoot: '/' }, { cgroupRoot: '/' }],
  [{ memorySwap: { swapBehavior: 'LimitedSwap' } }, { swapBehavior: 'LimitedSwap' }],
  [{ memorySwap: { swapBehavior: '' }, featureGates: { NodeSwap: false } }, { swapBehavior: '' }],
  [{ nodeStatusUpdateFrequency: '1s' }, { nodeStatusUpdateFrequencyMs: 1_000, nodeStatusReportFrequencyMs: 1_000 }],
  [
    { maxPods: 0, podsPerCore: 3 },
    { maxPods: 110, podsPerCore: 3 },
  ],
  [
    { evictionSoft: { 'memory.available': '1Gi' }, evictionSoftGracePeriod: { 'memory.available': '1m' } },
    { evictionSoftGracePeriodMs: { 'memory.available': 60_000 } },
  ],
])('%j of a kubelet is read', (fields, expected) => {
  const { config, faults } = withKubelet(fields);
  expect(faults).toEqual([]);
  expect(config).toMatchObject(expected);
});

it('the domain of the cluster is in lower case and without a dot at its end', () => {
  const services = { enabled: true, endpoints: 'all' };
  const { config } = check([
    { ...KUBELET, clusterDomain: 'Site.Example.' },
    { ...AGENT, ...ENDPOINT, services },
  ]);
  expect(config.services).toEqual({ endpoints: 'all', dnsAddress: '169.254.20.10', clusterDomain: 'site.example' });
});

it.each([
  [undefined, undefined, 10_000, 300_000],
  [0, 0, 10_000, 300_000],
  [20_000, undefined, 20_000, 20_000],
  [20_000, 60_000, 20_000, 60_000],
  [undefined, 60_000, 10_000, 60_000],
])('the status is computed and written at these intervals: %s, %s', (update, report, updateMs, reportMs) => {
  expect(statusFrequencies(update, report)).toEqual({ updateMs, reportMs });
});
