/**
 * How the security context of a container applies to a process of the machine. Source: upstream
 * pkg/securitycontext/util.go (DetermineEffectiveSecurityContext), pkg/kubelet/kuberuntime/security_context.go.
 * Fields that a process cannot have are refused.
 */

import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { listOf, numberOf, recordOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { fsGroupOf } from './volume-content.ts';

export interface ProcessSecurity {
  readonly kind: 'security';
  /** Undefined: that of the agent. */
  readonly userId: number | undefined;
  readonly groupId: number | undefined;
  readonly supplementalGroups: readonly number[];
  readonly readOnlyRoot: boolean;
  readonly noNewPrivileges: boolean;
  /** Undefined: all that the agent has. */
  readonly capabilities: { readonly dropped: readonly string[]; readonly added: readonly string[] } | undefined;
}

export interface SecurityRefusal {
  readonly kind: 'refused';
  readonly message: string;
}

const refused = (message: string): SecurityRefusal => ({ kind: 'refused', message });

/** A pod that asked for user ids of its own must not run with those of the machine. */
export const NO_USER_NAMESPACE = 'hostUsers: false is not supported on this node';

/** @param agentUserId the user of a container that names none */
export function processSecurity(
  pod: KubePod,
  container: Container,
  agentUserId: number,
): ProcessSecurity | SecurityRefusal {
  const ofPod = pod.spec?.securityContext ?? {};
  const context = { ...ofPod, ...container.securityContext };
  const unsupported = unsupportedField(context);
  if (unsupported !== undefined) return refused(`securityContext.${unsupported} is not supported on this node`);
  if (pod.spec?.hostUsers === false) return refused(NO_USER_NAMESPACE);
  const userId = numberOf(context['runAsUser']);
  const rootFault = context['runAsNonRoot'] === true ? nonRootFault(pod, container, userId, agentUserId) : undefined;
  if (rootFault !== undefined) return refused(rootFault);
  if (agentUserId !== 0 && userId !== undefined && userId !== agentUserId) {
    return refused(`securityContext.runAsUser ${userId} is not supported on this node: its agent does not run as root`);
  }
  const fsGroup = fsGroupOf(pod);
  const capabilities = recordOf(context['capabilities']);
  const [dropped, added] = [capabilityNames(capabilities['drop']), capabilityNames(capabilities['add'])];
  return {
    kind: 'security',
    userId,
    groupId: numberOf(context['runAsGroup']),
    supplementalGroups: [
      ...(fsGroup === undefined ? [] : [fsGroup]),
      ...listOf(ofPod['supplementalGroups']).flatMap((group) => numberOf(group) ?? []),
    ],
    readOnlyRoot: context['readOnlyRootFilesystem'] === true,
    noNewPrivileges: context['allowPrivilegeEscalation'] === false,
    capabilities: dropped.length === 0 || context['privileged'] === true ? undefined : { dropped, added },
  };
}

/** The names that `setpriv` uses: `ALL` is `all`, and `NET_ADMIN` is `net_admin`. */
const capabilityNames = (names: unknown): readonly string[] =>
  listOf(names).map((name) => textOf(name).toLowerCase().replace(/^cap_/, ''));

/** Source: upstream security_context_others.go (verifyRunAsNonRoot). */
function nonRootFault(pod: KubePod, { name }: Container, userId: number | undefined, agentUserId: number) {
  const { name: podName, namespace, uid } = pod.metadata;
  const where = `(pod: "${podName}_${namespace}(${uid})", container: ${name})`;
  if (userId === 0) return `container's runAsUser breaks non-root policy ${where}`;
  if (userId === undefined && agentUserId === 0) {
    return `container has runAsNonRoot and image will run as root ${where}`;
  }
  return undefined;
}

/** The first field that a process of the machine cannot have. */
function unsupportedField(context: Readonly<Record<string, unknown>>): string | undefined {
  if (Object.keys(recordOf(context['seLinuxOptions'])).length > 0) return 'seLinuxOptions';
  if (Object.keys(recordOf(context['windowsOptions'])).length > 0) return 'windowsOptions';
  if (textOf(context['procMount']) === 'Unmasked') return 'procMount';
  if (recordOf(context['seccompProfile'])['type'] === 'Localhost') return 'seccompProfile.localhostProfile';
  if (recordOf(context['appArmorProfile'])['type'] === 'Localhost') return 'appArmorProfile.localhostProfile';
  const [sysctl] = listOf(context['sysctls']);
  return sysctl === undefined ? undefined : `sysctls[${textOf(recordOf(sysctl)['name'])}]`;
}
