/** The mounts of a container. Source: upstream pkg/kubelet/kubelet_pods.go (makeMounts). */
import type { Container, KubePod, Volume, VolumeMount } from '../../shared/kinds/types.ts';
import type { Variables } from './env.ts';

export interface PlannedMount {
  readonly volume: Volume;
  readonly target: string;
  /** Within the volume; '' for all of it. */
  readonly subPath: string;
  readonly readOnly: boolean;
}

export type MountPlan =
  | { readonly kind: 'mounts'; readonly mounts: readonly PlannedMount[] }
  | { readonly kind: 'failed'; readonly message: string };

/** Volumes that only the agent writes. */
const READ_ONLY_SOURCES = ['configMap', 'secret', 'downwardAPI', 'projected'] as const;

export function mountPlan(pod: KubePod, container: Container, variables: Variables): MountPlan {
  const mounts: PlannedMount[] = [];
  for (const mount of container.volumeMounts ?? []) {
    const planned = plannedMount(pod, mount, variables);
    if ('message' in planned) return { kind: 'failed', message: planned.message };
    mounts.push(planned);
  }
  // A mount on a parent directory would hide an earlier one below it.
  return { kind: 'mounts', mounts: mounts.sort((one, other) => depthOf(one) - depthOf(other)) };
}

function plannedMount(
  pod: KubePod,
  {
    name = '',
    mountPath = '',
    subPath = '',
    subPathExpr = '',
    readOnly = false,
    mountPropagation = 'None',
  }: VolumeMount,
  variables: Variables,
): PlannedMount | { readonly message: string } {
  const volume = pod.spec?.volumes?.find((each) => each.name === name);
  if (volume === undefined) return { message: `cannot find volume ${JSON.stringify(name)} to mount into container` };
  if (mountPropagation === 'Bidirectional') {
    return { message: `volumeMount ${mountPath}: mountPropagation Bidirectional is not supported on this node` };
  }
  const expanded = subPathExpr === '' ? subPath : expandedSubPath(subPathExpr, variables);
  if (expanded === undefined) return { message: `missing value for ${JSON.stringify(subPathExpr)}` };
  if (expanded.startsWith('/')) return { message: `error SubPath \`${expanded}\` must not be an absolute path` };
  if (expanded.split('/').includes('..'))
    return { message: `unable to provision SubPath \`${expanded}\`: must not contain '..'` };
  const isReadOnly =
    readOnly ||
    volume.persistentVolumeClaim?.readOnly === true ||
    READ_ONLY_SOURCES.some((source) => volume[source] !== undefined);
  return { volume, target: absolute(mountPath), subPath: expanded, readOnly: isReadOnly };
}

const absolute = (path: string): string => {
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  return `/${names.join('/')}`;
};

const depthOf = ({ target }: PlannedMount): number => target.split('/').length;

/** Undefined if it names a variable that does not exist. */
function expandedSubPath(text: string, variables: Variables): string | undefined {
  let isMissing = false;
  const expanded = text.replace(/\$(?:\$|\(([^()]*)\))/g, (_, name: string | undefined) => {
    if (name === undefined) return '$';
    if (!Object.hasOwn(variables, name)) isMissing = true;
    return variables[name] ?? '';
  });
  return isMissing ? undefined : expanded;
}
