/**
 * Options of `podman pod create` and `podman create` for a pod and its containers. Sources: podman-pod-create(1),
 * podman-create(1); upstream pkg/kubelet/kuberuntime/kuberuntime_sandbox.go (generatePodSandboxConfig),
 * kuberuntime_container.go (generateContainerConfig), security_context.go.
 */

import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { listOf, numberOf, recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { ContainerMount } from '../ports/container-inputs.ts';
import { expand } from './env.ts';
import { unsupportedProbe } from './probe.ts';
import { NO_USER_NAMESPACE } from './security-context.ts';
import { fsGroupOf } from './volume-content.ts';

export const podmanPodName = (podUid: string): string => `nodekeeper-${podUid}`;
/** The container that holds the namespaces of the pod. */
export const podmanInfraName = (podUid: string): string => `${podmanPodName(podUid)}-infra`;
/** @param run restartCount of the run */
export const podmanContainerName = (podUid: string, container: string, run: number): string =>
  `${podmanPodName(podUid)}-${container}-${run}`;

/** Pods of the agent have the first label, those of this one root directory the second. */
export const UID_LABEL = 'nodekeeper.dev/pod-uid';
export const ROOT_LABEL = 'nodekeeper.dev/root-directory';

export const usesHostNetwork = ({ spec }: KubePod): boolean => spec?.['hostNetwork'] === true;

const flag = (name: string, isSet: boolean): readonly string[] => (isSet ? [name] : []);
const each = (name: string, texts: readonly string[]): readonly string[] => texts.flatMap((text) => [name, text]);

/** Options of `podman pod create`. */
export function podmanPodOptions(pod: KubePod, rootDirectory: string): readonly string[] {
  const { uid = '', name = '', namespace = '' } = pod.metadata;
  const spec = recordOf(pod.spec);
  const isHostNetwork = usesHostNetwork(pod);
  const labels = {
    [UID_LABEL]: uid,
    [ROOT_LABEL]: rootDirectory,
    'nodekeeper.dev/pod-namespace': namespace,
    'nodekeeper.dev/pod-name': name,
  };
  const dns = recordOf(spec['dnsConfig']);
  return [
    ...['--name', podmanPodName(uid), '--infra-name', podmanInfraName(uid)],
    ...each(
      '--label',
      Object.entries(labels).map(([key, text]) => `${key}=${text}`),
    ),
    ...['--share', spec['shareProcessNamespace'] === true ? 'ipc,net,uts,pid' : 'ipc,net,uts'],
    ...(isHostNetwork ? ['--network', 'host'] : ['--hostname', textOf(spec['hostname']) || name]),
    ...(isHostNetwork ? [] : each('--publish', publishedPorts(pod))),
    ...each(
      '--add-host',
      recordsOf(spec['hostAliases']).flatMap(({ ip, hostnames }) =>
        listOf(hostnames).map((host) => `${textOf(host)}:${textOf(ip)}`),
      ),
    ),
    ...each('--dns', listOf(dns['nameservers']).map(textOf)),
    ...each('--dns-search', listOf(dns['searches']).map(textOf)),
    ...each(
      '--dns-option',
      recordsOf(dns['options']).map((one) => [textOf(one['name']), textOf(one['value'])].filter(Boolean).join(':')),
    ),
    ...each(
      '--sysctl',
      recordsOf(recordOf(spec['securityContext'])['sysctls']).map(
        (one) => `${textOf(one['name'])}=${textOf(one['value'])}`,
      ),
    ),
  ];
}

function publishedPorts({ spec }: KubePod): readonly string[] {
  const ports = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].flatMap(({ ports: own = [] }) => own);
  return ports.flatMap((port) => {
    const { hostPort, containerPort, hostIP, protocol } = recordOf(port);
    if (numberOf(hostPort) === undefined || hostPort === 0) return [];
    const address = textOf(hostIP) === '' ? '' : `${bracketed(textOf(hostIP))}:`;
    return `${address}${hostPort}:${containerPort}/${(textOf(protocol) || 'TCP').toLowerCase()}`;
  });
}

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address);

export interface PodmanContainerFacts {
  readonly pod: KubePod;
  readonly container: Container;
  readonly variables: Readonly<Record<string, string>>;
  readonly mounts: readonly ContainerMount[];
  /** User of the image, as it names it; '' for root. */
  readonly imageUser: string;
  /** Limits, by `podmanLimits`. */
  readonly limits: readonly string[];
  readonly run: number;
  /** The output of the run is appended to this file. */
  readonly logPath: string;
  /** Where `envFile` of the plan is stored while the container is created. */
  readonly envFilePath: string;
}

export type PodmanContainerPlan =
  | {
      readonly kind: 'create';
      /** Arguments of `podman create`. */
      readonly args: readonly string[];
      /** Variables of podman itself, which the options `--env NAME` pass to the container. */
      readonly env: Readonly<Record<string, string>>;
      /** Content of the file of variables, which may contain secrets; '' without such a file. */
      readonly envFile: string;
    }
  /** The spec requires something that podman cannot do here. */
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Variables of podman, its helpers and the C library. As variables of podman they would change what podman itself does,
 * so they are passed in a file.
 *
 * Versions of podman differ in what quotes, comments, spaces and line ends in that file mean. A value with such
 * characters, or a name that is no identifier, is passed on the command line.
 */
const OF_PODMAN =
  /^(?:LD_|GLIBC_|MALLOC_|GO[A-Z]+$|XDG_|_?CONTAINERS?_|_?PODMAN|BUILDAH|STORAGE_|REGISTRY_|DOCKER_|NETAVARK|CNI|CRUN|OCI_|CONMON|SSL_CERT|DBUS_|LISTEN_|NOTIFY_|LC_|RES_|RESOLV_|TZ|TMP|NODEKEEPER_)|^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|IFS|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|JOURNAL_STREAM|INVOCATION_ID)$|_proxy$/i;

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Means itself in the file in each version of podman. podman reads lines of at most 64 KiB. */
const PLAIN_VALUE = /^[\w.,:;/@%+=~!?&()[\]{}|<>^*-]{1,60000}$/;

/** Arguments of `podman create` for one run of a container. */
export function podmanContainerPlan(facts: PodmanContainerFacts): PodmanContainerPlan {
  const { pod, container, variables, mounts, limits, run, logPath, envFilePath } = facts;
  const { uid = '' } = pod.metadata;
  const spec = recordOf(pod.spec);
  const fault = unsupportedProbe(container) ?? securityFault(facts) ?? mountFault(mounts);
  if (fault !== undefined) return { kind: 'refused', message: fault };
  const names = Object.keys(variables);
  const carried = names.filter((name) => !OF_PODMAN.test(name));
  const others = names.filter((name) => OF_PODMAN.test(name));
  const filed = others.filter((name) => IDENTIFIER.test(name) && PLAIN_VALUE.test(variables[name] ?? ''));
  const words = (list: readonly string[] = []): readonly string[] => list.map((word) => expand(word, variables));
  const entrypoint = words(container.command);
  return {
    kind: 'create',
    env: Object.fromEntries(carried.map((name) => [name, variables[name] ?? ''])),
    envFile: filed.map((name) => `${name}=${variables[name]}\n`).join(''),
    args: [
      ...['--pod', podmanPodName(uid), '--name', podmanContainerName(uid, container.name ?? '', run)],
      // The agent pulls images, restarts containers and rotates their output.
      ...['--pull', 'never', '--restart', 'no', '--log-driver', 'k8s-file', '--log-opt', `path=${logPath}`],
      '--http-proxy=false',
      ...limits,
      ...flag('--tty', recordOf(container)['tty'] === true),
      ...flag('--interactive', recordOf(container)['stdin'] === true),
      ...(container.workingDir ? ['--workdir', container.workingDir] : []),
      ...(spec['hostPID'] === true ? ['--pid', 'host'] : []),
      ...(spec['hostIPC'] === true ? ['--ipc', 'host'] : []),
      ...securityOptions(pod, container),
      ...mounts.flatMap(mountOption),
      ...each('--env', carried),
      ...(filed.length === 0 ? [] : ['--env-file', envFilePath]),
      ...each(
        '--env',
        others.filter((name) => !filed.includes(name)).map((name) => `${name}=${variables[name]}`),
      ),
      ...(entrypoint.length === 0 ? [] : ['--entrypoint', JSON.stringify(entrypoint)]),
      '--',
      container.image ?? '',
      ...words(container.args),
    ],
  };
}

/** A path with a colon needs `--mount`. Commas separate the parts of that option. */
function mountOption({ source, target, readOnly }: ContainerMount): readonly string[] {
  if (!source.includes(':')) return ['--volume', `${source}:${target}:${readOnly ? 'ro' : 'rw'},rslave`];
  return ['--mount', `type=bind,src=${source},dst=${target},bind-propagation=rslave${readOnly ? ',ro' : ''}`];
}

function mountFault(mounts: readonly ContainerMount[]): string | undefined {
  const odd = mounts.find(({ source, target }) => source.includes(':') && /[,"]/.test(source + target));
  if (odd === undefined) return undefined;
  return `volumeMount ${odd.target}: podman cannot mount a path with a colon and a comma`;
}

const contextOf = (pod: KubePod, container: Container) => ({
  ...pod.spec?.securityContext,
  ...container.securityContext,
});

function securityOptions(pod: KubePod, container: Container): readonly string[] {
  const ofPod = recordOf(pod.spec?.securityContext);
  const context = recordOf(contextOf(pod, container));
  const user = numberOf(context['runAsUser']);
  const group = numberOf(context['runAsGroup']);
  const fsGroup = fsGroupOf(pod);
  const groups = [...(fsGroup === undefined ? [] : [fsGroup]), ...listOf(ofPod['supplementalGroups'])];
  const capabilities = recordOf(context['capabilities']);
  const seLinux = recordOf(context['seLinuxOptions']);
  const isUnconfined = (field: string): boolean => recordOf(context[field])['type'] === 'Unconfined';
  return [
    ...(user === undefined ? [] : ['--user', group === undefined ? `${user}` : `${user}:${group}`]),
    ...each(
      '--group-add',
      groups.map((one) => String(one)),
    ),
    ...flag('--privileged', context['privileged'] === true),
    // podman would add writable directories in memory.
    ...(context['readOnlyRootFilesystem'] === true ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ...each('--cap-drop', listOf(capabilities['drop']).map(textOf)),
    ...each('--cap-add', listOf(capabilities['add']).map(textOf)),
    ...each('--security-opt', [
      ...flag('no-new-privileges', context['allowPrivilegeEscalation'] === false),
      ...flag('seccomp=unconfined', isUnconfined('seccompProfile')),
      ...flag('apparmor=unconfined', isUnconfined('appArmorProfile')),
      ...flag('unmask=ALL', context['procMount'] === 'Unmasked'),
      ...Object.entries(seLinux).map(([name, text]) => `label=${name}:${textOf(text)}`),
    ]),
  ];
}

/** Source: upstream security_context_others.go (verifyRunAsNonRoot). */
function securityFault({ pod, container, imageUser }: PodmanContainerFacts): string | undefined {
  const context = recordOf(contextOf(pod, container));
  if (Object.keys(recordOf(context['windowsOptions'])).length > 0) return notSupported('windowsOptions');
  for (const field of ['seccompProfile', 'appArmorProfile']) {
    if (recordOf(context[field])['type'] === 'Localhost') return notSupported(`${field}.localhostProfile`);
  }
  if (pod.spec?.hostUsers === false) return NO_USER_NAMESPACE;
  const user = numberOf(context['runAsUser']);
  if (user === undefined && numberOf(context['runAsGroup']) !== undefined) {
    return 'runAsGroup is specified without a runAsUser';
  }
  if (context['runAsNonRoot'] !== true) return undefined;
  const { name, namespace, uid } = pod.metadata;
  const where = `(pod: "${name}_${namespace}(${uid})", container: ${container.name})`;
  if (user === 0) return `container's runAsUser breaks non-root policy ${where}`;
  if (user !== undefined) return undefined;
  const ofImage = imageUser.split(':', 1)[0] ?? '';
  if (ofImage === '' || Number(ofImage) === 0) return `container has runAsNonRoot and image will run as root ${where}`;
  if (/^\d+$/.test(ofImage)) return undefined;
  return `container has runAsNonRoot and image has non-numeric user (${ofImage}), cannot verify user is non-root ${where}`;
}

const notSupported = (field: string): string => `securityContext.${field} is not supported on this node`;
