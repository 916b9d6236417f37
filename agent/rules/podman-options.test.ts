/** Each field of a pod that podman's options carry: without the field no option, with it exactly these. */
import { describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { type PodmanContainerFacts, podmanContainerPlan, podmanPodOptions } from './podman-pod.ts';

const podOf = (spec: object): KubePod =>
  ({ metadata: { name: 'web', namespace: 'shop', uid: 'u-1' }, spec: { containers: [], ...spec } }) as KubePod;

function argsOf(container: object, spec: object = {}, mounts: readonly object[] = []): readonly string[] {
  const plan = podmanContainerPlan({
    pod: podOf(spec),
    container: { name: 'main', image: 'registry.example/web:1', ...container } as Container,
    variables: {},
    mounts: mounts as PodmanContainerFacts['mounts'],
    imageUser: '',
    limits: [],
    run: 2,
    logPath: '/var/log/main.2.log',
    envFilePath: '/pods/main.env',
  });
  if (plan.kind === 'refused') throw new Error(plan.message);
  return plan.args;
}

/** What a field adds to the arguments. */
const added = (args: readonly string[], plain: readonly string[]): string => {
  const start = args.findIndex((arg, index) => arg !== plain[index]);
  return start < 0 ? '' : args.slice(start, start + args.length - plain.length).join(' ');
};

const PLAIN = argsOf({});

describe('the options of a container', () => {
  it('without a field that adds one', () => {
    expect(PLAIN.join(' ')).toBe(
      '--pod nodekeeper-u-1 --name nodekeeper-u-1-main-2 --pull never --restart no --log-driver k8s-file ' +
        '--log-opt path=/var/log/main.2.log --http-proxy=false -- registry.example/web:1',
    );
  });

  it.each<[string, object, string]>([
    ['tty', { tty: true }, '--tty'],
    ['stdin', { stdin: true }, '--interactive'],
    ['workingDir', { workingDir: '/app' }, '--workdir /app'],
    ['command', { command: ['a', 'b'] }, '--entrypoint ["a","b"]'],
    ['args', { args: ['a', 'b'] }, 'a b'],
  ])('with %s', (_name, container, options) => expect(added(argsOf(container), PLAIN)).toBe(options));

  it.each<[string, object, string]>([
    ['a user', { runAsUser: 7 }, '--user 7'],
    ['a user and a group', { runAsUser: 7, runAsGroup: 0 }, '--user 7:0'],
    ['privileges', { privileged: true }, '--privileged'],
    ['a read-only root', { readOnlyRootFilesystem: true }, '--read-only --read-only-tmpfs=false'],
    ['capabilities', { capabilities: { drop: ['ALL'], add: ['CHOWN'] } }, '--cap-drop ALL --cap-add CHOWN'],
    ['no escalation', { allowPrivilegeEscalation: false }, '--security-opt no-new-privileges'],
    ['no seccomp', { seccompProfile: { type: 'Unconfined' } }, '--security-opt seccomp=unconfined'],
    ['no AppArmor', { appArmorProfile: { type: 'Unconfined' } }, '--security-opt apparmor=unconfined'],
    ['all of proc', { procMount: 'Unmasked' }, '--security-opt unmask=ALL'],
    [
      'SELinux',
      { seLinuxOptions: { type: 't', level: 's0' } },
      '--security-opt label=type:t --security-opt label=level:s0',
    ],
  ])('with %s, of the container or the pod', (_name, securityContext, options) => {
    expect(added(argsOf({ securityContext }), PLAIN)).toBe(options);
    expect(added(argsOf({}, { securityContext }), PLAIN)).toBe(options);
  });

  it.each<[string, object, string]>([
    ['the processes of the machine', { hostPID: true }, '--pid host'],
    ['the IPC of the machine', { hostIPC: true }, '--ipc host'],
    [
      'groups',
      { securityContext: { fsGroup: 5, supplementalGroups: [6, 7] } },
      '--group-add 5 --group-add 6 --group-add 7',
    ],
  ])('with %s', (_name, spec, options) => expect(added(argsOf({}, spec), PLAIN)).toBe(options));

  it('with fields that say no', () => {
    const no = { tty: false, stdin: false, securityContext: { privileged: false, allowPrivilegeEscalation: true } };
    expect(argsOf(no, { hostPID: false, hostIPC: false })).toEqual(PLAIN);
    const defaults = {
      seccompProfile: { type: 'RuntimeDefault' },
      procMount: 'Default',
      readOnlyRootFilesystem: false,
    };
    expect(argsOf({ securityContext: defaults })).toEqual(PLAIN);
  });

  it('never with what podman cannot do', () => {
    const refused = (securityContext: object) => () => argsOf({ securityContext });
    expect(refused({ windowsOptions: { runAsUserName: 'x' } })).toThrow('windowsOptions is not supported');
    expect(refused({ windowsOptions: {} })).not.toThrow();
    expect(refused({ seccompProfile: { type: 'Localhost' } })).toThrow('seccompProfile.localhostProfile');
    expect(refused({ appArmorProfile: { type: 'Localhost' } })).toThrow('appArmorProfile.localhostProfile');
    expect(refused({ runAsGroup: 1 })).toThrow('runAsGroup is specified without a runAsUser');
  });
});

describe('the options of a pod', () => {
  const PLAIN_POD = podmanPodOptions(podOf({}), '/root').join(' ');

  it.each<[string, object, string]>([
    [
      'aliases',
      { hostAliases: [{ ip: '10.0.0.1', hostnames: ['a', 'b'] }] },
      '--add-host a:10.0.0.1 --add-host b:10.0.0.1',
    ],
    ['name servers', { dnsConfig: { nameservers: ['10.0.0.2'] } }, '--dns 10.0.0.2'],
    ['search domains', { dnsConfig: { searches: ['example'] } }, '--dns-search example'],
    [
      'options of the resolver',
      { dnsConfig: { options: [{ name: 'ndots', value: '2' }, { name: 'rotate' }] } },
      '--dns-option ndots:2 --dns-option rotate',
    ],
    ['sysctls', { securityContext: { sysctls: [{ name: 'a.b', value: '1' }] } }, '--sysctl a.b=1'],
  ])('with %s', (_name, spec, options) => {
    expect(podmanPodOptions(podOf(spec), '/root').join(' ')).toBe(`${PLAIN_POD} ${options}`);
  });

  it('share namespaces and a network', () => {
    expect(PLAIN_POD).toContain('--share ipc,net,uts --hostname web');
    expect(podmanPodOptions(podOf({ shareProcessNamespace: true }), '/root')).toContain('ipc,net,uts,pid');
    expect(podmanPodOptions(podOf({ hostname: 'db' }), '/root').join(' ')).toContain('--hostname db');
    const host = podmanPodOptions(podOf({ hostNetwork: true, hostname: 'db' }), '/root').join(' ');
    expect(host).toContain('--network host');
    expect(host).not.toContain('--hostname');
  });
});

it.each([
  ['/a', true, '--volume /a:/data:ro,rslave'],
  ['/a', false, '--volume /a:/data:rw,rslave'],
  ['/a:b', true, '--mount type=bind,src=/a:b,dst=/data,bind-propagation=rslave,ro'],
  ['/a:b', false, '--mount type=bind,src=/a:b,dst=/data,bind-propagation=rslave'],
])('a container mounts %s, read-only: %s', (source, readOnly, options) => {
  const mounts = [{ source, target: '/data', readOnly, isFile: false, isPart: false }];
  expect(added(argsOf({}, {}, mounts), PLAIN)).toBe(options);
});

it('a container with a user of its own is not root, whatever its image says', () => {
  const securityContext = { runAsNonRoot: true, runAsUser: 1_000 };
  expect(argsOf({ securityContext }).join(' ')).toContain('--user 1000');
});

it('a pod publishes the ports that have one of the host, and no other', () => {
  const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 0 }, { containerPort: 82, hostPort: 8_082 }];
  const options = podmanPodOptions(podOf({ containers: [{ name: 'main', ports }] }), '/root');
  expect(options.filter((_, index) => options[index - 1] === '--publish')).toEqual(['8082:82/tcp']);
});
