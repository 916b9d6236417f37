import { describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { type PodmanContainerFacts, podmanContainerPlan, podmanPodOptions } from './podman-pod.ts';

const podOf = (spec: Record<string, unknown>): KubePod => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'u-1' },
  spec: { containers: [], ...spec },
});
const main: Container = { name: 'main', image: 'registry.example/web:1' };

function planOf(container: Partial<Container>, more: Partial<PodmanContainerFacts> = {}) {
  const facts = {
    pod: podOf({}),
    variables: {},
    mounts: [],
    imageUser: '',
    limits: [],
    run: 2,
    logPath: '/var/log/main.2.log',
    envFilePath: '/pods/main.env',
  };
  return podmanContainerPlan({ ...facts, container: { ...main, ...container }, ...more });
}

function argsOf(container: Partial<Container>, more: Partial<PodmanContainerFacts> = {}): readonly string[] {
  const plan = planOf(container, more);
  if (plan.kind === 'refused') throw new Error(plan.message);
  return plan.args;
}

/** The values of an option, in order. */
const valuesOf = (args: readonly string[], option: string): readonly string[] =>
  args.flatMap((arg, index) => (args[index - 1] === option ? [arg] : []));

describe('a pod in podman', () => {
  it('has its uid as name, and labels that find it again', () => {
    const options = podmanPodOptions(podOf({}), '/var/lib/nodekeeper');
    expect(valuesOf(options, '--name')).toEqual(['nodekeeper-u-1']);
    expect(valuesOf(options, '--infra-name')).toEqual(['nodekeeper-u-1-infra']);
    expect(valuesOf(options, '--label')).toEqual([
      'nodekeeper.dev/pod-uid=u-1',
      'nodekeeper.dev/root-directory=/var/lib/nodekeeper',
      'nodekeeper.dev/pod-namespace=shop',
      'nodekeeper.dev/pod-name=web',
    ]);
  });

  it('publishes the ports of the machine, and nothing in the network of the machine', () => {
    const ports = [
      { containerPort: 80 },
      { containerPort: 80, hostPort: 8080 },
      { containerPort: 53, hostPort: 5353, protocol: 'UDP', hostIP: '127.0.0.1' },
      { containerPort: 81, hostPort: 8081, hostIP: '::1' },
    ];
    const containers = [{ ...main, ports }];
    expect(valuesOf(podmanPodOptions(podOf({ containers }), '/root'), '--publish')).toEqual([
      '8080:80/tcp',
      '127.0.0.1:5353:53/udp',
      '[::1]:8081:81/tcp',
    ]);
    const ofMachine = podmanPodOptions(podOf({ containers, hostNetwork: true }), '/root');
    expect([valuesOf(ofMachine, '--publish'), valuesOf(ofMachine, '--network')]).toEqual([[], ['host']]);
  });

  it('has the names, resolvers and kernel parameters of its spec', () => {
    const options = podmanPodOptions(
      podOf({
        hostname: 'db',
        shareProcessNamespace: true,
        hostAliases: [{ ip: '192.0.2.1', hostnames: ['a', 'b'] }],
        dnsConfig: { nameservers: ['192.0.2.53'], searches: ['example'], options: [{ name: 'ndots', value: '2' }] },
        securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1024' }] },
      }),
      '/root',
    );
    expect(options.slice(options.indexOf('--share'))).toEqual([
      ...['--share', 'ipc,net,uts,pid', '--hostname', 'db', '--add-host', 'a:192.0.2.1', '--add-host', 'b:192.0.2.1'],
      ...['--dns', '192.0.2.53', '--dns-search', 'example', '--dns-option', 'ndots:2'],
      ...['--sysctl', 'net.core.somaxconn=1024'],
    ]);
  });
});

describe('a container in podman', () => {
  it('is created without a pull, a restart policy and the proxies of the machine', () => {
    expect(argsOf({ args: ['--color', '$(COLOR)'] }, { variables: { COLOR: 'green' } })).toEqual([
      ...['--pod', 'nodekeeper-u-1', '--name', 'nodekeeper-u-1-main-2', '--pull', 'never', '--restart', 'no'],
      ...['--log-driver', 'k8s-file', '--log-opt', 'path=/var/log/main.2.log', '--http-proxy=false'],
      ...['--env', 'COLOR', '--', 'registry.example/web:1', '--color', 'green'],
    ]);
  });

  it('replaces the entry point of the image by its command', () => {
    const args = argsOf({ command: ['/bin/sh', '-c', 'echo $(A) $$(A)'], args: ['x'] }, { variables: { A: '1' } });
    expect(valuesOf(args, '--entrypoint')).toEqual(['["/bin/sh","-c","echo 1 $(A)"]']);
    expect(args.slice(-2)).toEqual(['registry.example/web:1', 'x']);
  });

  it.each(['LD_PRELOAD', 'PATH', 'HOME', 'XDG_RUNTIME_DIR', 'CONTAINERS_CONF', 'https_proxy', 'TMPDIR', 'GODEBUG'])(
    'gets %s in a file, because podman would read it',
    (name) => {
      const value = 'http://user:pass@proxy.example:3128';
      const plan = planOf({}, { variables: { [name]: value, SECRET: 'two\nlines' } });
      if (plan.kind === 'refused') throw new Error(plan.message);
      expect([plan.env, plan.envFile]).toEqual([{ SECRET: 'two\nlines' }, `${name}=${value}\n`]);
      expect([valuesOf(plan.args, '--env'), valuesOf(plan.args, '--env-file')]).toEqual([
        ['SECRET'],
        ['/pods/main.env'],
      ]);
    },
  );

  it.each(['', 'a b', '"a"', 'a#b', 'two\nlines', 'a\r', 'a\\', '$a', "'", 'x'.repeat(60_001)])(
    'gets a variable of podman with a value that its versions read differently (%j) on the command line',
    (value) => {
      const plan = planOf({}, { variables: { DOCKER_AUTH: value, 'LD_a.b': 'x' } });
      if (plan.kind === 'refused') throw new Error(plan.message);
      expect([plan.env, plan.envFile]).toEqual([{}, '']);
      expect(valuesOf(plan.args, '--env')).toEqual([`DOCKER_AUTH=${value}`, 'LD_a.b=x']);
      expect(plan.args).not.toContain('--env-file');
    },
  );

  it('gets variables that podman does not read as variables of the call, whatever their values', () => {
    const variables = { GOOGLE_CREDENTIALS: '{"key":\n"x"}', TOKEN: '#"' };
    const plan = planOf({}, { variables });
    if (plan.kind === 'refused') throw new Error(plan.message);
    expect([plan.env, valuesOf(plan.args, '--env')]).toEqual([variables, ['GOOGLE_CREDENTIALS', 'TOKEN']]);
  });

  it('mounts paths with spaces and with colons', () => {
    const mount = { isFile: false, readOnly: true };
    const mounts = [
      { ...mount, source: '/data/a b', target: '/a b' },
      { ...mount, source: '/data/c:d', target: '/c', readOnly: false },
    ];
    const args = argsOf({}, { mounts });
    expect(valuesOf(args, '--volume')).toEqual(['/data/a b:/a b:ro,rslave']);
    expect(valuesOf(args, '--mount')).toEqual(['type=bind,src=/data/c:d,dst=/c,bind-propagation=rslave']);
    expect(planOf({}, { mounts: [{ ...mount, source: '/data/c:d,e', target: '/c' }] }).kind).toBe('refused');
  });

  it('has the users, capabilities and options of its security context', () => {
    const pod = podOf({ securityContext: { runAsUser: 1, fsGroup: 7, supplementalGroups: [8] } });
    const securityContext = {
      runAsUser: 2,
      runAsGroup: 3,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
      seccompProfile: { type: 'Unconfined' },
      seLinuxOptions: { type: 'web_t' },
    };
    const args = argsOf({ securityContext }, { pod });
    expect(args.slice(args.indexOf('--user'), args.indexOf('--'))).toEqual([
      ...['--user', '2:3', '--group-add', '7', '--group-add', '8', '--read-only', '--read-only-tmpfs=false'],
      ...['--cap-drop', 'ALL', '--cap-add', 'NET_ADMIN', '--security-opt', 'no-new-privileges'],
      ...['--security-opt', 'seccomp=unconfined', '--security-opt', 'label=type:web_t'],
    ]);
  });

  it('is refused with user ids of its own', () => {
    const hostUsers = (own: boolean): KubePod => ({ metadata: { uid: 'u' }, spec: { hostUsers: own } });
    const message = 'hostUsers: false is not supported on this node';
    expect(planOf({}, { pod: hostUsers(false) })).toEqual({ kind: 'refused', message });
    expect(planOf({}, { pod: hostUsers(true) }).kind).toBe('create');
  });

  it.each([
    [{ runAsNonRoot: true, runAsUser: 0 }, '', "container's runAsUser breaks non-root policy"],
    [{ runAsNonRoot: true }, '', 'container has runAsNonRoot and image will run as root'],
    [{ runAsNonRoot: true }, '0:0', 'container has runAsNonRoot and image will run as root'],
    [
      { runAsNonRoot: true },
      'web',
      'container has runAsNonRoot and image has non-numeric user (web), cannot verify user',
    ],
    [{ runAsGroup: 1 }, '', 'runAsGroup is specified without a runAsUser'],
    [{ seccompProfile: { type: 'Localhost' } }, '', 'securityContext.seccompProfile.localhostProfile is not supported'],
  ])('is refused with %j and the image user %j', (securityContext, imageUser, message) => {
    expect(planOf({ securityContext }, { imageUser })).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining(message),
    });
  });

  it('may run as the numeric user of its image', () => {
    expect(planOf({ securityContext: { runAsNonRoot: true } }, { imageUser: '1000:0' }).kind).toBe('create');
  });
});
