/**
 * The operating system of a pod, and fields that only the other one has (pkg/apis/core/validation/validation.go:
 * validateOS, validateLinux, validateWindows). A pod without `spec.os` may have all of them.
 */
import { forbiddenField, notSupported, required } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import type { PodSpec } from '../types.ts';

const OPERATING_SYSTEMS = ['linux', 'windows'];
const FOR_WINDOWS = 'cannot be set for a windows pod';
const FOR_LINUX = 'windows options cannot be set for a linux pod';

/** Of the spec. */
const NOT_ON_WINDOWS = ['hostPID', 'hostIPC', 'shareProcessNamespace'] as const;
/** Of the security context of the pod. */
const NOT_IN_PODS = [
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
/** Of the security context of a container. */
const NOT_IN_CONTAINERS = [
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

export function validateOs(spec: PodSpec): Cause[] {
  if (spec.os === undefined) return [];
  const { name = '' } = spec.os;
  if (name === '') return [required('spec.os.name', 'cannot be empty')];
  if (!OPERATING_SYSTEMS.includes(name)) return [notSupported('spec.os', name, OPERATING_SYSTEMS)];
  return name === 'windows' ? withoutLinux(spec) : withoutWindows(spec);
}

function withoutLinux(spec: PodSpec): Cause[] {
  const context = spec.securityContext ?? {};
  return [
    ...NOT_IN_PODS.flatMap((name) => forbidden(`spec.securityContext.${name}`, context[name], FOR_WINDOWS)),
    ...NOT_ON_WINDOWS.flatMap((name) => forbidden(`spec.${name}`, spec[name], FOR_WINDOWS)),
    ...contextsOf(spec).flatMap(([field, each]) =>
      NOT_IN_CONTAINERS.flatMap((name) => forbidden(`${field}.${name}`, each[name], FOR_WINDOWS)),
    ),
  ];
}

const withoutWindows = (spec: PodSpec): Cause[] => [
  ...forbidden('spec.securityContext.windowsOptions', spec.securityContext?.windowsOptions, FOR_LINUX),
  ...contextsOf(spec).flatMap(([field, each]) => forbidden(`${field}.windowsOptions`, each.windowsOptions, FOR_LINUX)),
];

/** The security context of each container, with its path. */
const contextsOf = (spec: PodSpec) =>
  KINDS_OF_CONTAINERS.flatMap((kind) =>
    (spec[kind] ?? []).flatMap(({ securityContext }, index) =>
      securityContext === undefined ? [] : ([[`spec.${kind}[${index}].securityContext`, securityContext]] as const),
    ),
  );

/** The host's namespaces and an empty list say nothing when they are off. */
function forbidden(field: string, value: unknown, why: string): Cause[] {
  const isOff = value === undefined || (value === false && /^spec\.host/.test(field));
  return isOff || (Array.isArray(value) && value.length === 0) ? [] : [forbiddenField(field, why)];
}
