/**
 * Command line and environment of a container's process, from its spec. Source: upstream pkg/kubelet/kubelet_pods.go
 * (makeEnvironmentVariables) and third_party/forked/golang/expansion.
 */
import { numberOf, recordOf, recordsOf, textOf } from '../../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';

/** The default PATH, for shell scripts. */
const PATH_DEFAULT = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export type ContainerSpec = Readonly<Record<string, unknown>>;

export interface CommandLine {
  readonly kind: 'command';
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
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

/** `$(NAME)` is replaced by the variable if it exists, `$$` by a dollar sign. */
export const expand = (text: string, env: Readonly<Record<string, string>>): string =>
  text.replace(/\$(?:\$|\(([^()]*)\))/g, (whole, name: string | undefined) => {
    if (name === undefined) return '$';
    return Object.hasOwn(env, name) ? (env[name] ?? '') : whole;
  });

function fieldOf(path: string, pod: KubeObject, hostIp: string | undefined): string | undefined {
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
      return textOf(pod.spec?.['nodeName']);
    case 'spec.serviceAccountName':
      return textOf(pod.spec?.['serviceAccountName']);
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

function mountOf(spec: KubeObject['spec'], container: ContainerSpec): string | undefined {
  const volumes = recordsOf(spec?.['volumes']);
  const foreign = recordsOf(container['volumeMounts']).find((mount) => {
    const volume = volumes.find((each) => each['name'] === mount['name']);
    return textOf(recordOf(volume?.['hostPath'])['path']) !== mount['mountPath'];
  });
  return foreign === undefined ? undefined : textOf(foreign['mountPath']);
}

export function commandLine(
  pod: KubeObject,
  container: ContainerSpec,
  hostIp: string | undefined,
): CommandLine | Unsupported {
  const env: Record<string, string> = { PATH: PATH_DEFAULT, HOSTNAME: pod.metadata.name ?? '' };
  if (recordsOf(container['envFrom']).length > 0) return unsupported('envFrom: there are no config maps and secrets');
  for (const entry of recordsOf(container['env'])) {
    const name = textOf(entry['name']);
    const from = recordOf(entry['valueFrom']);
    const path = textOf(recordOf(from['fieldRef'])['fieldPath']);
    if (entry['valueFrom'] === undefined) {
      env[name] = expand(textOf(entry['value']), env);
      continue;
    }
    const value = fieldOf(path, pod, hostIp);
    const optional = Object.values(from).some((source) => recordOf(source)['optional'] === true);
    if (value === undefined && !optional) return unsupported(`env ${name}: only fields of the pod can be read`);
    if (value !== undefined) env[name] = value;
  }
  const mount = mountOf(pod.spec, container);
  if (mount !== undefined) return unsupported(`volumeMount ${mount}: only a hostPath at its own path can be had`);
  const words = [container['command'], container['args']].flatMap((list) =>
    Array.isArray(list) ? list.map((word) => expand(String(word), env)) : [],
  );
  const [file, ...args] = words;
  if (file === undefined || !Array.isArray(container['command']) || container['command'].length === 0) {
    return unsupported('no command: without images there is no default command');
  }
  const security = { ...recordOf(pod.spec?.['securityContext']), ...recordOf(container['securityContext']) };
  return {
    kind: 'command',
    file,
    args,
    env,
    directory: textOf(container['workingDir']) || undefined,
    userId: numberOf(security['runAsUser']),
    groupId: numberOf(security['runAsGroup']),
  };
}
