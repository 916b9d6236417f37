/**
 * Command line and environment of a container's process, from its spec. Source: upstream pkg/kubelet/kubelet_pods.go
 * (makeEnvironmentVariables) and third_party/forked/golang/expansion.
 */
import { TOKEN_DIRECTORY } from '../../../shared/kube/accounts/pod-account.ts';
import { numberOf } from '../../../shared/kube/normal-form.ts';
import type { Container, KubePod, Volume } from '../../../shared/kube/types.ts';

/** The default PATH, for shell scripts. */
const PATH_DEFAULT = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface CommandLine {
  readonly kind: 'command';
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Working directory; undefined: that of the agent. */
  readonly directory: string | undefined;
  readonly userId: number | undefined;
  readonly groupId: number | undefined;
}

/** The spec requires something that processes on this machine cannot have. */
export interface Unsupported {
  readonly kind: 'unsupported';
  readonly message: string;
}

const unsupported = (message: string): Unsupported => ({ kind: 'unsupported', message });

/** Replaces `$(NAME)` by the variable if it exists, and `$$` by a dollar sign. */
export const expand = (text: string, env: Readonly<Record<string, string>>): string =>
  text.replace(/\$(?:\$|\(([^()]*)\))/g, (whole, name: string | undefined) => {
    if (name === undefined) return '$';
    return Object.hasOwn(env, name) ? (env[name] ?? '') : whole;
  });

/** The value of a downward API field, undefined for an unsupported field. */
function fieldOf(path: string, pod: KubePod, hostIp: string | undefined): string | undefined {
  const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (subscript !== null) return pod.metadata[subscript[1] as 'labels' | 'annotations']?.[subscript[2] ?? ''] ?? '';
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name ?? '';
    case 'metadata.namespace':
      return pod.metadata.namespace ?? '';
    case 'metadata.uid':
      return pod.metadata.uid ?? '';
    case 'spec.nodeName':
      return pod.spec?.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec?.serviceAccountName ?? '';
    // A pod shares the network of the machine, and its address.
    case 'status.hostIP':
    case 'status.hostIPs':
    case 'status.podIP':
    case 'status.podIPs':
      return hostIp ?? '';
    default:
      return undefined;
  }
}

/**
 * Path of the first mount that is not a hostPath at its own path. Processes cannot have any other. Every pod mounts the
 * token of its account: it is left out, because a process that shares the file system of the machine cannot have it there.
 */
function unsupportedMount(volumes: readonly Volume[], { volumeMounts = [] }: Container): string | undefined {
  for (const { name, mountPath = '' } of volumeMounts) {
    if (mountPath === TOKEN_DIRECTORY) continue;
    const volume = volumes.find((each) => each.name === name);
    if (volume?.hostPath?.path !== mountPath) return mountPath;
  }
  return undefined;
}

/** @param hostIp address of this machine, undefined while it is unknown */
export function commandLine(pod: KubePod, container: Container, hostIp: string | undefined): CommandLine | Unsupported {
  const env: Record<string, string> = { PATH: PATH_DEFAULT, HOSTNAME: pod.metadata.name ?? '' };
  if ((container.envFrom ?? []).length > 0) return unsupported('envFrom: there are no config maps and secrets');
  for (const { name = '', value: text = '', valueFrom } of container.env ?? []) {
    if (valueFrom === undefined) {
      env[name] = expand(text, env);
      continue;
    }
    const { fieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
    const value = fieldOf(fieldRef?.fieldPath ?? '', pod, hostIp);
    const isOptional = (configMapKeyRef ?? secretKeyRef)?.optional === true;
    if (value === undefined && !isOptional) return unsupported(`env ${name}: only fields of the pod can be read`);
    if (value !== undefined) env[name] = value;
  }
  const mount = unsupportedMount(pod.spec?.volumes ?? [], container);
  if (mount !== undefined) return unsupported(`volumeMount ${mount}: only a hostPath at its own path is supported`);
  const { command = [] } = container;
  const [file, ...args] = [...command, ...(container.args ?? [])].map((word) => expand(word, env));
  if (file === undefined || command.length === 0) {
    return unsupported('no command: without images there is no default command');
  }
  const security = { ...pod.spec?.securityContext, ...container.securityContext };
  return {
    kind: 'command',
    file,
    args,
    env,
    directory: container.workingDir || undefined,
    userId: numberOf(security['runAsUser']),
    groupId: numberOf(security['runAsGroup']),
  };
}
