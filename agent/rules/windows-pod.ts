/** Fields of a pod that have no meaning on Windows. Source: validateWindows in pkg/apis/core/validation. */
import type { Container, KubePod } from '../../shared/kinds/types.ts';

const POD_FIELDS = ['hostPID', 'hostIPC', 'shareProcessNamespace', 'hostUsers'] as const;
const POD_SECURITY = [
  'seLinuxOptions',
  'seccompProfile',
  'appArmorProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
] as const;
const CONTAINER_SECURITY = [
  'seLinuxOptions',
  'seccompProfile',
  'appArmorProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const;

/** The first of these fields, as a path; undefined if there is none. */
export function linuxOnlyField(pod: KubePod, container: Container): string | undefined {
  const spec = pod.spec ?? {};
  const ofPod = POD_FIELDS.find((field) => spec[field] !== undefined);
  if (ofPod !== undefined) return `spec.${ofPod}`;
  const podSecurity = POD_SECURITY.find((field) => spec.securityContext?.[field] !== undefined);
  if (podSecurity !== undefined) return `spec.securityContext.${podSecurity}`;
  const security = CONTAINER_SECURITY.find((field) => container.securityContext?.[field] !== undefined);
  return security === undefined ? undefined : `securityContext.${security} of container ${container.name ?? ''}`;
}

/** Path of a volume below the directory of its container: without a drive, in backslashes. */
export const mountPathBelow = (mountPath: string): string =>
  mountPath
    .replace(/^[A-Za-z]:/, '')
    .split(/[\\/]+/)
    .filter((name) => name !== '' && name !== '.' && name !== '..')
    .join('\\');
