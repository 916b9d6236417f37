/** Fields that only pods on Linux have. Source: description of PodSpec.os in the Kubernetes API; validateWindows. */
import type { PodSpec } from '../types.ts';

const OF_PODS = ['hostPID', 'hostIPC', 'hostUsers', 'shareProcessNamespace', 'resources'] as const;
const OF_POD_SECURITY = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
] as const;
const OF_CONTAINER_SECURITY = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const;
const KINDS_OF_CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;
/** Flags that upstream stores as false where they are absent. */
const OFF_WHEN_FALSE: readonly string[] = ['hostPID', 'hostIPC'];

/** The fields that this pod has, as paths from `spec`. */
export const linuxFields = (spec: PodSpec): readonly string[] => [
  ...OF_POD_SECURITY.filter((name) => isSet(spec.securityContext?.[name])).map(
    (name) => `spec.securityContext.${name}`,
  ),
  ...OF_PODS.filter((name) => isSet(spec[name]) && !(OFF_WHEN_FALSE.includes(name) && spec[name] === false)).map(
    (name) => `spec.${name}`,
  ),
  ...securityContexts(spec).flatMap(([path, context]) =>
    OF_CONTAINER_SECURITY.filter((name) => isSet(context[name])).map((name) => `${path}.${name}`),
  ),
];

/** The security context of each container that has one, with its path. */
export const securityContexts = (
  spec: PodSpec,
): readonly (readonly [
  path: string,
  context: NonNullable<NonNullable<PodSpec['containers']>[number]['securityContext']>,
])[] =>
  KINDS_OF_CONTAINERS.flatMap((kind) =>
    (spec[kind] ?? []).flatMap(({ securityContext }, index) =>
      securityContext === undefined ? [] : [[`spec.${kind}[${index}].securityContext`, securityContext] as const],
    ),
  );

/** An empty list says as much as none. */
const isSet = (value: unknown): boolean => value !== undefined && !(Array.isArray(value) && value.length === 0);
