import { describe, expect, it } from 'vitest';
import { type DoctorConfig, findingsOf, type Readings } from './doctor.ts';
import { volumeFindings } from './doctor-volumes.ts';

const config: DoctorConfig = {
  endpoint: 'https://api.example',
  nodeName: 'edge-1',
  rootDirectory: '/var/lib/nodekeeper',
  runtime: 'exec',
  shutdownGracePeriodMs: 40_000,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
};
const DAY_MS = 86_400_000;
const GIB = 1_024 ** 3;
const healthy: Readings = {
  agentVersion: '0.1.0',
  nodeVersion: 'v24.0.0',
  endpoint: {
    kind: 'answered',
    tookMs: 12.4,
    serverVersion: 'v1.34.0',
    certificateEndsMs: 90 * DAY_MS,
    clockAheadMs: 900,
  },
  key: { kind: 'key', isEnrolled: true },
  token: { status: 200, message: '200' },
  shutdown: { kind: 'logind', delayMaxMs: 40_000 },
  cgroups: { kind: 'found', directory: '/sys/fs/cgroup/system.slice/nodekeeper-pods.service', missing: [] },
  disk: { kind: 'measured', availableBytes: 20 * GIB, capacityBytes: 40 * GIB },
  volumeLimits: { kind: 'limited' },
  runtime: { kind: 'exec', mounts: 'mounts' },
  agent: { kind: 'healthy' },
  updates: { isOnTrial: false, failed: undefined },
  usedRelay: undefined,
  witness: undefined,
  services: undefined,
  ownRelay: undefined,
  swapFault: undefined,
  offline: {
    remembered: { kind: 'read', pods: [{ metadata: { name: 'web' } }], refusals: [], isAnyUsable: true },
    staticPods: [],
    staticFaults: [],
    images: { kind: 'read', here: new Set() },
  },
  readyMessage: undefined,
};

const problems = (over: Partial<Readings>, settings: Partial<DoctorConfig> = {}) =>
  findingsOf({ ...config, ...settings }, { ...healthy, ...over }, 0).filter(({ outcome }) => outcome !== 'ok');

describe('the doctor', () => {
  it('finds nothing on a healthy machine', () => {
    const findings = findingsOf(config, healthy, 0);
    expect(findings.map(({ check, outcome, message }) => `${outcome} ${check}: ${message}`)).toEqual([
      'ok versions: agent 0.1.0, Node.js v24.0.0, API v1.34.0',
      'ok endpoint: https://api.example answered in 12 ms',
      'ok certificate: trusted, ends in 90 days',
      'ok clock: within 1 s of the server',
      'ok key: /var/lib/nodekeeper/node-key.pem, readable by its owner only, is enrolled',
      'ok token: accepted, Node edge-1 exists',
      'ok runtime: exec, volumes by mounts',
      'ok cgroups: /sys/fs/cgroup/system.slice/nodekeeper-pods.service',
      'ok shutdown: logind waits 40 s for pods',
      'ok disk: /var/lib/nodekeeper: 20.0 GiB free (50 %)',
      'ok volume-limits: a claim is limited to its size, by project quota',
      'ok swap: fits the configuration',
      'ok remembered: 1 pods start without the API',
      'ok updates: off: no updatePublicKey',
      'ok agent: runs and is healthy',
    ]);
  });

  const answeredWith = (more: object) => ({ endpoint: { ...healthy.endpoint, ...more } }) as Partial<Readings>;
  const used = (availableBytes: number, capacityBytes: number): Partial<Readings> => ({
    disk: { kind: 'measured', availableBytes, capacityBytes },
  });
  it.each<[string, Partial<Readings>, string]>([
    ['certificate', answeredWith({ certificateEndsMs: 14 * DAY_MS }), 'ok trusted, ends in 14 days'],
    ['certificate', answeredWith({ certificateEndsMs: 14 * DAY_MS - 1 }), 'warning trusted, ends in 13 days'],
    ['certificate', answeredWith({ certificateEndsMs: undefined }), 'ok trusted'],
    ['clock', answeredWith({ clockAheadMs: 30_000 }), 'ok within 30 s of the server'],
    ['clock', answeredWith({ clockAheadMs: -30_000 }), 'ok within 30 s of the server'],
    ['clock', answeredWith({ clockAheadMs: 30_001 }), 'warning 30 s behind the server'],
    ['clock', answeredWith({ clockAheadMs: undefined }), 'ok the server did not send its time'],
    ['disk', used(10, 100), 'ok /var/lib/nodekeeper: 0.0 GiB free (10 %)'],
    ['disk', used(9, 100), 'warning /var/lib/nodekeeper: 0.0 GiB free (9 %)'],
    ['disk', used(0, 0), 'warning /var/lib/nodekeeper: 0.0 GiB free (0 %)'],
    ['key', { key: { kind: 'token' } }, 'ok a token is configured, the machine needs no key'],
    ['key', { key: { kind: 'key', isEnrolled: false } }, 'warning the key is not enrolled yet'],
    ['token', { token: undefined }, 'warning not checked: the machine is not enrolled'],
    ['token', { token: { status: 500, message: '500 busy' } }, 'warning not checked: 500 busy'],
    ['runtime', { runtime: { kind: 'jobs' } }, 'ok exec, processes in Job objects'],
    ['runtime', { runtime: { kind: 'podman', version: '5.1', message: '' } }, 'ok podman 5.1'],
    ['shutdown', { shutdown: { kind: 'logind', delayMaxMs: 40_001 } }, 'ok logind waits 40.001 s for pods'],
    ['agent', { agent: { kind: 'unknown' } }, 'ok not checked: healthzPort is 0'],
    ['versions', { endpoint: { kind: 'failed', code: '', message: '' } }, 'ok agent 0.1.0, Node.js v24.0.0'],
    ['cgroups', { cgroups: { kind: 'found', directory: '/c', missing: [], fault: 'EROFS' } }, 'warning /c: EROFS'],
  ])('says of the %s with %j: %s', (check, readings, expected) => {
    const finding = findingsOf(config, { ...healthy, ...readings }, 0).find((each) => each.check === check);
    expect(`${finding?.outcome} ${finding?.message}`).toBe(expected);
  });

  it('says nothing of cgroups of a runtime that has none of its own', () => {
    const checks = findingsOf(config, { ...healthy, runtime: { kind: 'none' } }, 0).map(({ check }) => check);
    expect(checks).not.toContain('cgroups');
  });

  it('says whether updates are on, and when a version is on trial', () => {
    const updates = (isOnTrial: boolean, updatePublicKey?: string) =>
      findingsOf(
        { ...config, ...(updatePublicKey && { updatePublicKey }) },
        { ...healthy, updates: { isOnTrial, failed: undefined } },
        0,
      ).find(({ check }) => check === 'updates');
    expect(updates(true)).toMatchObject({ outcome: 'ok', message: 'off: no updatePublicKey' });
    expect(updates(false, 'key')).toMatchObject({ outcome: 'ok', message: 'on' });
    expect(updates(true, 'key')).toMatchObject({ outcome: 'warning', message: 'the running version is on trial' });
  });

  const failedEndpoint = (code: string, message = code) => ({ endpoint: { kind: 'failed', code, message } }) as const;
  const answered = healthy.endpoint as Extract<Readings['endpoint'], { kind: 'answered' }>;
  it.each<[string, Partial<Readings>, Partial<DoctorConfig>, string, RegExp, RegExp]>([
    ['name', failedEndpoint('ENOTFOUND'), {}, 'failed endpoint', /ENOTFOUND/, /DNS/],
    ['port', failedEndpoint('ECONNREFUSED'), {}, 'failed endpoint', /ECONNREFUSED/, /firewall/],
    ['authority', failedEndpoint('SELF_SIGNED_CERT_IN_CHAIN'), {}, 'failed certificate', /SELF/, /Authority/],
    ['signature', failedEndpoint('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), {}, 'failed certificate', /LEAF/, /Authority/],
    ['end of the certificate', failedEndpoint('CERT_HAS_EXPIRED'), {}, 'failed certificate', /EXPIRED/, /Renew/],
    [
      'near end of the certificate',
      { endpoint: { ...answered, certificateEndsMs: 3 * DAY_MS } },
      {},
      'warning certificate',
      /3 days/,
      /Renew/,
    ],
    ['clock', { endpoint: { ...answered, clockAheadMs: -95_000 } }, {}, 'warning clock', /95 s ahead of/, /chrony/],
    ['key', { key: { kind: 'unusable', message: 'others may read' } }, {}, 'failed key', /others may read/, /enrol/],
    ['enrolment', { key: { kind: 'none', hasBootstrapToken: false } }, {}, 'failed key', /neither/, /bootstrap-token/],
    ['first start', { key: { kind: 'none', hasBootstrapToken: true } }, {}, 'warning key', /no key yet/, /Start/],
    ['identity', { token: { status: 401, message: '401 Unauthorized' } }, {}, 'failed token', /refused/, /--reissue/],
    ['name of the node', { token: { status: 403, message: '' } }, {}, 'failed token', /not for/, /hostnameOverride/],
    ['registration', { token: { status: 404, message: '' } }, {}, 'warning token', /does not exist/, /registers/],
    ['runtime none', { runtime: { kind: 'none' } }, {}, 'warning runtime', /NoRuntime/, /podman or exec/],
    [
      'podman',
      { runtime: { kind: 'podman', version: undefined, message: 'spawn podman ENOENT' } },
      {},
      'failed runtime',
      /ENOENT/,
      /Install podman/,
    ],
    ['mounts', { runtime: { kind: 'exec', mounts: 'links' } }, {}, 'warning runtime', /links/, /RestrictNamespaces/],
    [
      'controllers',
      { cgroups: { kind: 'found', directory: '/c', missing: ['memory'] } },
      {},
      'warning cgroups',
      /no controller memory/,
      /delegates/,
    ],
    ['cgroup v1', { cgroups: { kind: 'missing', why: 'v1' } }, {}, 'warning cgroups', /not enforced/, /v2/],
    ['D-Bus', { shutdown: { kind: 'failed', message: 'no bus' } }, {}, 'failed shutdown', /no bus/, /dbus/],
    ['delay', { shutdown: { kind: 'logind', delayMaxMs: 5_000 } }, {}, 'warning shutdown', /waits 5 s/, /99-kubelet/],
    ['grace', {}, { shutdownGracePeriodMs: 0 }, 'warning shutdown', /kills pods/, /shutdownGracePeriod/],
    ['rights', { disk: { kind: 'failed', message: 'EACCES' } }, {}, 'failed disk', /EACCES/, /root/],
    [
      'space',
      { disk: { kind: 'measured', availableBytes: GIB, capacityBytes: 40 * GIB } },
      {},
      'warning disk',
      /1\.0 GiB free \(3 %\)/,
      /DiskPressure/,
    ],
    ['swap', { swapFault: 'swap is on' }, {}, 'failed swap', /swap is on/, /swapoff/],
    [
      'bad version',
      { updates: { isOnTrial: false, failed: { version: '2', message: 'why' } } },
      { updatePublicKey: 'key' },
      'warning updates',
      /2 was not kept: why/,
      /Release another/,
    ],
    ['agent', { agent: { kind: 'absent', message: 'ECONNREFUSED' } }, {}, 'warning agent', /ECONN/, /systemctl start/],
    ['health', { agent: { kind: 'unhealthy', message: 'lease' } }, {}, 'failed agent', /lease/, /journalctl/],
  ])('finds a fault of: %s', (_what, readings, settings, head, message, todo) => {
    const [problem, ...others] = problems(readings, settings);
    expect(others).toEqual([]);
    expect(`${problem?.outcome} ${problem?.check}`).toBe(head);
    expect(problem?.message).toMatch(message);
    expect(problem?.todo).toMatch(todo);
  });
});

it('the doctor names the commands of the system of the machine', () => {
  const todos = (shutdown: Readings['shutdown']) =>
    problems({ shutdown, agent: { kind: 'unhealthy', message: 'no heartbeat' } }).map(({ check, todo }) => [
      check,
      todo,
    ]);
  expect(todos(healthy.shutdown)).toEqual([['agent', 'Read its log: journalctl -u nodekeeper-agent']]);
  expect(todos({ kind: 'preshutdown', preshutdown: { kind: 'absent' } })).toEqual([
    ['shutdown', expect.any(String)],
    ['agent', 'Read its log: type %ProgramData%\\nodekeeper\\agent.log'],
  ]);
});

it('says how volumes get limits, without a warning', () => {
  const volumeLimits = { kind: 'none', why: 'tmpfs has no project quotas', todo: 'Put it on XFS.' } as const;
  expect(volumeFindings(volumeLimits)).toEqual([
    {
      check: 'volume-limits',
      outcome: 'ok',
      message: 'claims are not limited to their size: tmpfs has no project quotas',
      todo: 'Put it on XFS.',
    },
  ]);
});
