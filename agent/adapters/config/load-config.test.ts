import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { authorityHash } from '../../../shared/host/authority-hash.ts';
import { describeConfigFault } from '../../rules/config-settings.ts';
import { PINNED_AUTHORITY_FILE } from '../http/pinned-authority.ts';
import { hostSystem } from './host-system.ts';
import { loadConfig, withConfigFile } from './load-config.ts';

const load = (args: readonly string[], files: Readonly<Record<string, string>> = {}) =>
  loadConfig(args, {
    hostname: () => 'Machine-1',
    readText: (path) => {
      const text = files[path];
      if (text === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
      return text;
    },
  });

const CA = rootCertificates[0] ?? '';
const ENDPOINT = '--endpoint=https://example.test';

const configOf = (args: readonly string[], files?: Readonly<Record<string, string>>) => {
  const loaded = load(args, files);
  if (loaded.kind !== 'ok') throw new Error(JSON.stringify(loaded));
  return loaded.config;
};
const faultsOf = (args: readonly string[], files?: Readonly<Record<string, string>>) => {
  const loaded = load(args, files);
  if (loaded.kind !== 'faults') throw new Error('expected faults');
  return loaded.faults.map(describeConfigFault);
};

const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const AGENT = 'apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\nendpoint: https://example.test\n';

/** Faults of a kubelet document that begins at line 3. */
const kubeletFaults = (fields: string) => faultsOf([ENDPOINT, '--config', 'k.yaml'], { 'k.yaml': KUBELET + fields });
const kubeletConfig = (fields: string) => configOf([ENDPOINT, '--config', 'k.yaml'], { 'k.yaml': KUBELET + fields });

describe('the configuration of the agent', () => {
  it('has the defaults of a kubelet', () => {
    expect(configOf([ENDPOINT])).toEqual({
      endpoint: 'https://example.test',
      clusterId: 'nodekeeper',
      keyRotationPeriodMs: 30 * 86_400_000,
      updateCheckPeriodMs: 30 * 60_000,
      rootDirectory: '/var/lib/nodekeeper',
      runtime: 'none',
      nodeName: 'machine-1',
      registerNode: true,
      registerSchedulable: true,
      registerWithTaints: [],
      nodeLabels: {},
      nodeIp: '',
      providerId: '',
      cloudProvider: '',
      nodeLeaseDurationSeconds: 40,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
      enableControllerAttachDetach: true,
      localStorageCapacityIsolation: true,
      maxPods: 110,
      podsPerCore: 0,
      systemReserved: {},
      kubeReserved: {},
      evictionHard: {
        'memory.available': { kind: 'quantity', value: 104_857_600 },
        'nodefs.available': { kind: 'percent', percent: 10 },
        'nodefs.inodesFree': { kind: 'percent', percent: 5 },
        'imagefs.available': { kind: 'percent', percent: 15 },
        'imagefs.inodesFree': { kind: 'percent', percent: 5 },
      },
      evictionSoft: {},
      evictionSoftGracePeriodMs: {},
      evictionMinimumReclaim: {},
      evictionMaxPodGracePeriodSeconds: 0,
      evictionPressureTransitionPeriodMs: 300_000,
      shutdownGracePeriodMs: 0,
      shutdownGracePeriodCriticalPodsMs: 0,
      shutdownGracePeriodByPodPriority: [],
      plannedSilenceOnSleepSeconds: 0,
      cgroupRoot: '',
      podPidsMax: undefined,
      cpuCfsQuota: true,
      enforceNodeAllocatable: true,
      topologyManagerPolicy: 'none',
      topologyManagerScope: 'container',
      topologyManagerPolicyOptions: {},
      staticPodPath: '',
      rememberPods: 'all',
      failSwapOn: true,
      swapBehavior: '',
      featureGates: {},
      healthzPort: 10_248,
    });
  });

  it('reads a file of two documents, names files, and lets flags win', () => {
    const config = configOf(
      ['--config=k.yaml', '--node-labels=site=b', '--register-node=false', '--max-pods', '7', '--register-schedulable'],
      {
        'k.yaml': `${KUBELET}maxPods: 20
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
evictionHard: {memory.available: 5%, nodefs.available: 0%}
systemReserved: {cpu: 500m, memory: 300Mi}
memorySwap: {swapBehavior: LimitedSwap}
registerWithTaints:
- {key: a, value: b, effect: NoSchedule}
---
${AGENT}clusterId: edge
certificateAuthorityFile: /ca.pem
bootstrapTokenFile: /token
nodeLabels: {site: a}
registerSchedulable: false
plannedSilenceOnSleepSeconds: 28800
runtime: exec
`,
        '/ca.pem': CA,
        '/token': 'abc.def\n',
      },
    );
    expect(config).toMatchObject({
      clusterId: 'edge',
      certificateAuthority: CA,
      bootstrapToken: 'abc.def',
      nodeLabels: { 'nodekeeper.dev/runtime': 'exec', site: 'b' },
      registerNode: false,
      registerSchedulable: true,
      plannedSilenceOnSleepSeconds: 28_800,
      runtime: 'exec',
      maxPods: 7,
      shutdownGracePeriodMs: 30_000,
      shutdownGracePeriodCriticalPodsMs: 10_000,
      evictionHard: { 'memory.available': { kind: 'percent', percent: 5 } },
      systemReserved: { cpu: '500m', memory: '300Mi' },
      swapBehavior: 'LimitedSwap',
      registerWithTaints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }],
    });
    expect(Object.keys(config.evictionHard)).toEqual(['memory.available']);
  });

  it('keeps pods with images away from a machine that runs processes, unless other taints are configured', () => {
    const taint = { key: 'nodekeeper.dev/runtime', value: 'exec', effect: 'NoSchedule' };
    expect(configOf([ENDPOINT, '--runtime=exec']).registerWithTaints).toEqual([taint]);
    expect(configOf([ENDPOINT, '--runtime=exec', '--register-with-taints=']).registerWithTaints).toEqual([]);
    expect(configOf([ENDPOINT, '--runtime=podman'])).toMatchObject({
      registerWithTaints: [],
      nodeLabels: { 'nodekeeper.dev/runtime': 'podman' },
    });
    expect(configOf([ENDPOINT])).toMatchObject({ registerWithTaints: [], nodeLabels: {} });
  });

  it('reads JSON, and the default thresholds with those of the file where asked to', () => {
    const fields = { mergeDefaultEvictionSettings: true, evictionHard: { 'memory.available': '200Mi' } };
    const text = JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      ...fields,
    });
    const config = configOf([ENDPOINT, '--config', 'k.json'], { 'k.json': text });
    expect(config.evictionHard).toMatchObject({
      'memory.available': { kind: 'quantity', value: 209_715_200 },
      'nodefs.available': { kind: 'percent', percent: 10 },
    });
  });

  it.each([
    ['keyRotationPeriod: 48h', 172_800_000],
    ['keyRotationPeriod: 0s', 0],
  ])('accepts %s', (field, keyRotationPeriodMs) => {
    expect(configOf(['--config', 'a.yaml'], { 'a.yaml': AGENT + field })).toMatchObject({ keyRotationPeriodMs });
  });

  it('refuses a rotation period that is probably a mistake', () => {
    expect(faultsOf(['--config', 'a.yaml'], { 'a.yaml': `${AGENT}keyRotationPeriod: 30ms` })).toEqual([
      'a.yaml:4: keyRotationPeriod: expected 0s, which is never, or at least 10s',
    ]);
  });

  it('reads taints from a flag', () => {
    expect(configOf([ENDPOINT, '--register-with-taints=a=b:NoSchedule,c:NoExecute']).registerWithTaints).toEqual([
      { key: 'a', value: 'b', effect: 'NoSchedule' },
      { key: 'c', effect: 'NoExecute' },
    ]);
  });

  it('takes 0 for unset where a kubelet does', () => {
    expect(kubeletConfig('nodeLeaseDurationSeconds: 0\nmaxPods: 0\nnodeStatusUpdateFrequency: 0s\n')).toMatchObject({
      nodeLeaseDurationSeconds: 40,
      maxPods: 110,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
    });
  });

  it('reports as often as it computes when only that is set', () => {
    expect(kubeletConfig('nodeStatusUpdateFrequency: 20s\n').nodeStatusReportFrequencyMs).toBe(20_000);
  });

  it('warns once of fields it knows and does not act on', () => {
    const text = `${KUBELET}cgroupDriver: systemd\nclusterDNS: [10.0.0.10]\nfeatureGates: {NodeSwap: true, Other: false}\n`;
    expect(load([ENDPOINT, '--config', 'k.yaml'], { 'k.yaml': text })).toMatchObject({
      kind: 'ok',
      warnings: [
        'known fields of a kubelet that this agent does not act on: cgroupDriver (k.yaml:3), clusterDNS (k.yaml:4), featureGates.Other (k.yaml:5)',
      ],
    });
  });

  it('reports every fault at once, each with its place', () => {
    const faults = faultsOf(['--config', 'k.yaml', '--colour', '--healthz-port=http', 'stray'], {
      'k.yaml': `${KUBELET}maxPod: 3
max_pods: 3
endpoint: https://example.test
nodeStatusUpdateFrequency: 10
systemReserved:
  cpu: 500m
  gpu: 1
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 10}
- {priority: 1, shutdownGracePeriodSecond: 10}
evictionHard: {memory.available: 101%}
---
${AGENT}runtime: docker
tokenFile: /token
`,
    });
    expect(faults).toEqual([
      '--colour: no such flag',
      '"stray": expected a flag',
      'k.yaml:3: maxPod: no field of KubeletConfiguration',
      'k.yaml:4: max_pods: no field of KubeletConfiguration; did you mean maxPods',
      'k.yaml:5: endpoint: no field of KubeletConfiguration; it belongs to AgentConfiguration',
      'k.yaml:6: nodeStatusUpdateFrequency 10: expected a duration such as 10s, 1m30s or 500ms, not negative',
      'k.yaml:9: systemReserved.gpu 1: expected one of the resources cpu, memory, ephemeral-storage, pid',
      'k.yaml:12: shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSecond: no such field',
      'k.yaml:13: evictionHard.memory.available "101%": expected a quantity above 0 such as 100Mi, or a percentage from 0% to 100%',
      'command line: --healthz-port "http": expected a whole number from 0 to 65535',
      'k.yaml:18: runtime "docker": expected one of "none", "exec", "podman"',
      "k.yaml:19: tokenFile cannot be read: ENOENT: no such file or directory, open '/token'",
    ]);
  });

  it.each([
    ['endpoint', 'http://example.test'],
    ['endpoint', 'https://'],
    ['heartbeatEndpoint', 'https://relay/path'],
    ['clusterId', 'a b'],
    ['keyRotationPeriod', '9s'],
    ['updateCheckPeriod', '9s'],
    ['rootDirectory', 'var/lib'],
    ['runtime', 'docker'],
  ])('names the field %s of the agent and its line for %s', (field, value) => {
    const text = `${AGENT.replace(field === 'endpoint' ? /endpoint:.*\n/ : /$^/, '')}${field}: ${value}\n`;
    const faults = faultsOf(['--config', 'a.yaml'], { 'a.yaml': text });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^a.yaml:${text.split('\n').length - 1}: ${field}`));
  });

  it.each([
    ['cgroupRoot', 'kubepods', 'cgroupRoot'],
    ['cgroupRoot', '/a/../b', 'cgroupRoot'],
    ['memorySwap', '{swapBehavior: Swap}', 'invalid configuration: memorySwap.swapBehavior'],
    ['topologyManagerPolicy', 'best', 'unknown policy'],
    ['nodeLeaseDurationSeconds', '-1', 'nodeLeaseDurationSeconds'],
    ['evictionSoft', '{memory.available: 1Gi}', 'grace period must be specified'],
    ['registerWithTaints', '[{key: a, value: 1}]', 'registerWithTaints[0].value'],
    ['registerWithTaints', '[{key: a, odd: b}]', 'registerWithTaints[0].odd: no such field'],
    ['nodeStatusUpdateFrequency', '999ms', 'nodeStatusUpdateFrequency'],
    ['shutdownGracePeriod', '100ms', 'shutdownGracePeriod'],
  ])('names the line of the field %s of a kubelet for %s', (field, value, message) => {
    const faults = kubeletFaults(`maxPods: 5\n${field}: ${value}\n`);
    expect(faults[0]).toMatch(/^k.yaml:4: /);
    expect(faults[0]).toContain(message);
  });

  it.each([
    ['keyRotationPeriod: 10s', { keyRotationPeriodMs: 10_000 }],
    ['keyRotationPeriod: 0s', { keyRotationPeriodMs: 0 }],
    ['updateCheckPeriod: 10s', { updateCheckPeriodMs: 10_000 }],
    ['updateCheckPeriod: 0s', { updateCheckPeriodMs: 30 * 60_000 }],
    ['clusterId: ""', { clusterId: 'nodekeeper' }],
    ['rootDirectory: /srv', { rootDirectory: '/srv' }],
  ])('accepts %s', (field, expected) => {
    expect(configOf(['--config', 'a.yaml'], { 'a.yaml': `${AGENT}${field}\n` })).toMatchObject(expected);
  });

  it('refuses documents of no kind, of another version, and twice of one kind, each with its line', () => {
    const file = (text: string) => faultsOf([ENDPOINT, '--config', 'a.yaml'], { 'a.yaml': text });
    expect(file('kind: Other\napiVersion: v1\n')[0]).toMatch(/^a.yaml:1: kind "Other": expected KubeletConfiguration/);
    expect(file(KUBELET.replace('v1beta1', 'v1'))[0]).toMatch(/^a.yaml:1: apiVersion .*v1": expected .*v1beta1/);
    expect(file(`${KUBELET}---\n${KUBELET}`)).toEqual(['a.yaml:5: KubeletConfiguration stands twice']);
    expect(file('- a\n')[0]).toMatch(/^a.yaml:1: expected a map of fields/);
  });

  it.each([
    [
      'shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s\n',
      /^k\.yaml:3: .*must be <= shutdownGracePeriod/,
    ],
    ['evictionHard: {memory.available: "5 %"}\n', /a percentage from 0% to 100%$/],
    ['evictionHard: {memory.available: 0x5%}\n', /a percentage from 0% to 100%$/],
    ['evictionHard: {memory.available: 1e1%}\n', /a percentage from 0% to 100%$/],
    ['shutdownGracePeriod: 30\nshutdownGracePeriodCriticalPods: 10s\n', /^k\.yaml:3: shutdownGracePeriod 30: expected/],
    ['nodeLeaseDurationSeconds: -1\n', /nodeLeaseDurationSeconds must be greater than 0$/],
    ['memorySwap: {swapBehavior: NoSwap}\nfeatureGates: {NodeSwap: false}\n', /^k\.yaml:3: .*NodeSwap is off$/],
    ['topologyManagerPolicy: best\n', /^k\.yaml:3: unknown policy: "best"$/],
    ['topologyManagerPolicy: restricted\ntopologyManagerScope: x\n', /^k\.yaml:4: unknown scope: "x"$/],
    ['cgroupRoot: ../x\n', /^k\.yaml:3: cgroupRoot "\.\.\/x": expected an absolute path/],
    ['enforceNodeAllocatable: [pod]\n', /^k\.yaml:3: enforceNodeAllocatable\[0\] "pod": expected one of none, pods/],
    [
      'evictionSoft: {memory.available: 1Gi}\n',
      /^k\.yaml:3: grace period must be specified for the soft eviction threshold memory\.available$/,
    ],
    ['evictionMinimumReclaim: {memory.available: 0%}\n', /^k\.yaml:3: evictionMinimumReclaim/],
    ['maxPods: 1\nmaxPods: 2\n', /^k\.yaml:4: Map keys must be unique$/],
    ['registerWithTaints: [{key: a, effect: Never}]\n', /^k\.yaml:3: registerWithTaints\[0\]\.effect/],
  ])('refuses %j', (fields, fault) => {
    expect(kubeletFaults(fields)).toEqual([expect.stringMatching(fault)]);
  });

  it.each([
    [['--node-labels=kubernetes.io/colour=red', ENDPOINT], /unknown 'kubernetes\.io' or 'k8s\.io' labels specified/],
    [['--node-ip=10.0.0.1,10.0.0.2', ENDPOINT], /dual-stack pair/],
    [['--cloud-provider=aws', ENDPOINT], /cloudProvider "aws": expected one of "", "external"$/],
    [['--endpoint=http://example.test'], /expected the https URL/],
    [['--endpoint=http://127.0.0.1:6443'], /expected the https URL/],
    [['--endpoint=https://exa[mple'], /expected the https URL/],
    [
      ['--certificate-authority=/x', ENDPOINT],
      /^command line: certificateAuthorityFile "\/x": expected certificates in PEM$/,
    ],
    [['--node-status-update-frequency=1ms', ENDPOINT], /nodeStatusUpdateFrequency: expected at least 1s/],
    [[], /^endpoint: expected the https URL/],
    [['--config=none.yaml', ENDPOINT], /^--config cannot be read: ENOENT/],
    [['--hostname-override=a_b', ENDPOINT], /^command line: node name "a_b"/],
    [['--token=a', '--token-file=/x', ENDPOINT], /either this or token, not both$/],
  ])('refuses %j', (args, fault) => {
    expect(faultsOf(args, { '/x': 'y' })[0]).toMatch(fault);
  });

  it.each([
    ['updatePublicKey: x', /^updatePublicKey: expected a public key of Ed25519 in PEM: /],
    ['updatePublicKeyFile: /x', /^updatePublicKeyFile: expected a public key of Ed25519 in PEM: /],
    ['updateCheckPeriod: 9s', /^updateCheckPeriod: expected at least 10s$/],
  ])('refuses %s', (line, fault) => {
    const faults = faultsOf(['--config=c.yaml', ENDPOINT], { 'c.yaml': `${AGENT}${line}\n`, '/x': 'y' });
    expect(faults.map((each) => each.replace(/^[^ ]*c\.yaml[^ ]* /, ''))[0]).toMatch(fault);
  });

  it('does not ask for a scope of policy none', () => {
    expect(kubeletConfig('topologyManagerScope: x\n').topologyManagerScope).toBe('container');
  });

  it('says nothing of what is missing when the file cannot be understood', () => {
    expect(faultsOf(['--config=k.yaml'], { 'k.yaml': 'a: [\n' })).toEqual([expect.stringMatching(/^k\.yaml:2: /)]);
    expect(faultsOf(['--config=k.yaml', ENDPOINT], { 'k.yaml': 'kind: Policy\n' })).toEqual([
      'k.yaml:1: kind "Policy": expected KubeletConfiguration or AgentConfiguration',
    ]);
  });

  it('repeats no secret', () => {
    const text = `${AGENT}token: 12345\n`;
    expect(faultsOf(['--config=k.yaml'], { 'k.yaml': text })).toEqual(['k.yaml:4: token: expected text']);
  });

  it.each(['--help', '-h'])('explains itself: %s', (flag) => {
    expect(load([flag])).toMatchObject({ kind: 'help', text: expect.stringContaining('--node-labels') });
  });

  it.each([['--colour'], ['stray'], ['--endpoint'], ['--config=none.yaml']])('%s is a fault of no field', (flag) => {
    const loaded = load([flag]);
    expect(loaded.kind === 'faults' ? loaded.faults[0]?.field : loaded.kind).toBe('');
  });
});

describe('a relay', () => {
  const files = (fields: string) => ({ 'a.yaml': AGENT + fields, '/ca.pem': CA });
  const withFields = (fields: string) => configOf(['--config', 'a.yaml'], files(fields));
  const faults = (fields: string) => faultsOf(['--config', 'a.yaml'], files(fields));

  it('is configured on its machine', () => {
    const relay = 'relay:\n  port: 7443\n  certificateFile: /r.pem\n  privateKeyFile: /r.key\n';
    expect(withFields(relay).relay).toEqual({
      address: '',
      port: 7_443,
      certificateFile: '/r.pem',
      privateKeyFile: '/r.key',
    });
  });

  it('is named on the others, with the site CA', () => {
    const fields = 'heartbeatEndpoint: https://relay.site:7443/\nheartbeatCertificateAuthorityFile: /ca.pem\n';
    expect(withFields(fields)).toMatchObject({
      heartbeatEndpoint: 'https://relay.site:7443',
      heartbeatCertificateAuthority: CA,
    });
  });

  it('is asked for probes by the others, which answer at a port unless that is turned off', () => {
    const relay = 'heartbeatEndpoint: https://relay.site:7443\n';
    expect(withFields(relay).witness).toEqual({ address: '', port: 7_445 });
    expect(withFields(`${relay}witness:\n  port: 1\n  address: '::'\n`).witness).toEqual({ address: '::', port: 1 });
    for (const fields of [`${relay}witness:\n  enabled: false\n`, 'witness:\n  port: 1\n', '']) {
      expect(withFields(fields).witness).toBeUndefined();
    }
    expect(faults(`${relay}witness:\n  port: x\n  enabled: 1\n  address: 2\n  more: 3\n`)).toHaveLength(4);
    expect(faults(`${relay}witness: 7445\n`)).toEqual(['a.yaml:5: witness 7445: expected {enabled, port, address}']);
  });

  it('is not needed for Services, which are off by default', () => {
    expect(withFields('').services).toBeUndefined();
    expect(withFields('services:\n  enabled: true\n').services).toEqual({
      endpoints: 'zone',
      dnsAddress: '169.254.20.10',
      clusterDomain: 'cluster.local',
    });
    expect(faults('services:\n  enabled: yes!\n  endpoints: near\n  dnsAddress: 127.0.0.1\n  dns: x\n')).toEqual([
      'a.yaml:8: services.dns: no such field',
      'a.yaml:5: services.enabled "yes!": expected true or false',
      'a.yaml:6: services.endpoints "near": expected zone or all',
      'a.yaml:7: services.dnsAddress "127.0.0.1": expected an address that pods can reach, such as 169.254.20.10',
    ]);
  });

  it('reports each wrong field with its line', () => {
    expect(faults('relay:\n  port: 0\n  certificateFile: relay.pem\n  key: /r.key\n')).toEqual([
      'a.yaml:7: relay.key: no such field',
      'a.yaml:5: relay.port 0: expected a port, a whole number from 1 to 65535',
      'a.yaml:6: relay.certificateFile "relay.pem": expected an absolute path',
      expect.stringContaining('relay.privateKeyFile'),
    ]);
    expect(faults('relay: 7443\n')).toEqual(['a.yaml:4: relay 7443: expected {port, certificateFile, privateKeyFile}']);
  });

  it.each(['http://relay:7443', 'relay:7443', 'https://relay:7443/path', 'https://'])('is not at %s', (url) => {
    expect(faults(`heartbeatEndpoint: ${url}\n`)).toEqual([
      `a.yaml:4: heartbeatEndpoint "${url}": expected the https URL of a relay, such as https://relay.site.example:7443`,
    ]);
  });

  it('never receives a configured token', () => {
    expect(faults('heartbeatEndpoint: https://relay:7443\ntoken: s3cret\n')).toEqual([
      'a.yaml:4: heartbeatEndpoint: expected no configured token: it would pass the relay; use a bootstrap token',
    ]);
  });

  it('has a site CA in PEM, and a CA needs a relay', () => {
    const wrong = 'heartbeatEndpoint: https://relay:7443\nheartbeatCertificateAuthority: nonsense\n';
    expect(faults(wrong)).toEqual(['heartbeatCertificateAuthority: expected certificates in PEM']);
    expect(faults('heartbeatCertificateAuthorityFile: /ca.pem\n')).toEqual([
      'heartbeatEndpoint: expected the https URL of the relay of the site CA',
    ]);
  });
});

describe('what an earlier run left on the disk', () => {
  const hash = authorityHash(CA);
  const argsOf = (caHash: string) => [ENDPOINT, `--ca-hash=${caHash}`, '--root-dir=/state'];
  const kept = `/state/${PINNED_AUTHORITY_FILE}`;

  it('is the authority that was found by its hash', () => {
    expect(configOf(argsOf(hash), { [kept]: CA }).certificateAuthority).toBe(CA);
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ['is another authority', { [kept]: rootCertificates[1] ?? '' }],
    ['is no authority', { [kept]: 'x' }],
    ['is nothing', {}],
  ])('%s: the authority has to be found again', (_, files) => {
    expect(configOf(argsOf(hash), files)).toMatchObject({ caHash: hash });
    expect(configOf(argsOf(hash), files).certificateAuthority).toBeUndefined();
  });

  it('is not read without a hash', () => {
    expect(configOf([ENDPOINT, '--root-dir=/state'], { [kept]: CA }).certificateAuthority).toBeUndefined();
  });
});

it('reports faults of settings also when the file has a fault', () => {
  const text = `${AGENT}nodeName: 7\n---\napiVersion: nodekeeper.dev/v1alpha1\nkind: [\n`;
  expect(faultsOf(['--config=a.yaml'], { 'a.yaml': text }).every((each) => each.startsWith('a.yaml:'))).toBe(true);
  // Without its documents the endpoint is missing too; that is no fault of the user.
  expect(faultsOf(['--config=none.yaml'])).toEqual([expect.stringMatching(/^--config cannot be read: /)]);
});

it('has no key for updates if the setting is empty', () => {
  expect(configOf(['--config=a.yaml'], { 'a.yaml': `${AGENT}updatePublicKey: ''\n` })).toMatchObject({
    endpoint: 'https://example.test',
  });
});

describe('the hub of the site', () => {
  const of = (url: string) => configOf(['--config=a.yaml'], { 'a.yaml': `${AGENT}hubEndpoint: ${url}\n` }).hubEndpoint;

  it('is an https URL, without slashes at its end', () => {
    expect([of('https://hub.site:6443//'), of("''")]).toEqual(['https://hub.site:6443', undefined]);
    expect(configOf([ENDPOINT]).hubEndpoint).toBeUndefined();
  });

  it.each(['http://hub:6443', 'hub:6443', 'https://', 'xhttps://hub', 'https://hub:99999'])('is not at %s', (url) => {
    expect(faultsOf(['--config=a.yaml'], { 'a.yaml': `${AGENT}hubEndpoint: ${url}\n` })).toEqual([
      `a.yaml:4: hubEndpoint "${url}": expected the https URL of the hub of the site, such as https://hub.site.example:6443`,
    ]);
  });
});

describe('the hash of an authority', () => {
  const hash = authorityHash(CA);

  it.each([`x${hash}`, `${hash}0`, hash.slice(0, -1), hash.toUpperCase(), hash.replace('sha256:', '')])(
    'is not %s',
    (text) => {
      expect(faultsOf([ENDPOINT, `--ca-hash=${text}`])).toEqual([
        `command line: caHash ${JSON.stringify(text)}: expected sha256: and 64 hexadecimal digits`,
      ]);
    },
  );

  it('is not needed with an authority', () => {
    const lines = `caHash: x\ncertificateAuthorityFile: /ca.pem\n`;
    const files = { 'a.yaml': AGENT + lines, '/ca.pem': CA };
    expect(configOf(['--config=a.yaml'], files)).toMatchObject({ certificateAuthority: CA });
    expect(configOf(['--config=a.yaml'], files).caHash).toBeUndefined();
    const inline = { 'a.yaml': `${AGENT}caHash: x\ncertificateAuthority: ${JSON.stringify(CA)}\n` };
    expect(configOf(['--config=a.yaml'], inline).caHash).toBeUndefined();
  });
});

it('a command that people type reads the file of this system, unless it names another one', () => {
  const others = [
    ['--config', 'x'],
    ['--config=x', '--json'],
    ['doctor', '--config=x'],
  ];
  for (const args of others) expect(withConfigFile(args)).toBe(args);
  expect(withConfigFile(['--configured', '--json'])).toEqual([
    '--config',
    hostSystem.configFile,
    '--configured',
    '--json',
  ]);
});

it('a flag without a value, a file without a text and a certificate that cannot be read are faults', () => {
  expect(faultsOf(['--endpoint'])).toContain('--endpoint: expected a value');
  const files = { 'a.yaml': `${AGENT}tokenFile: /t\n`, '/t': ' \n' };
  expect(faultsOf(['--config=a.yaml'], files)).toEqual(['a.yaml:4: tokenFile cannot be read: /t is empty']);
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const authority = { 'a.yaml': `${AGENT}certificateAuthorityFile: /ca.pem\n`, '/ca.pem': `${CA}\n${broken}` };
  expect(faultsOf(['--config=a.yaml'], authority)).toEqual([
    expect.stringMatching(/^a.yaml:4: certificateAuthorityFile "\/ca.pem": certificate 2 of 2 cannot be read: /),
  ]);
});
