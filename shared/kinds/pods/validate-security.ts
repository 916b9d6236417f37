/**
 * Security contexts (pkg/apis/core/validation/validation.go: ValidateSecurityContext, validatePodSpecSecurityContext).
 * With the operating system of a pod, and fields that only the other one has (validateOS, validateLinux,
 * validateWindows). A pod without `spec.os` may have all of them.
 */

import { duplicate, forbiddenField, invalidValue, notSupported, required } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import type { PodSpec } from '../types.ts';
import { linuxFields, securityContexts } from './linux-fields.ts';

const ID_MAX = 2_147_483_647;
const ID_TEXT = `must be between 0 and ${ID_MAX}, inclusive`;

interface Profile {
  readonly type?: string;
  readonly localhostProfile?: string;
}

/** The members with values to validate. */
interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly fsGroup?: number;
  readonly fsGroupChangePolicy?: string;
  readonly supplementalGroups?: readonly number[];
  readonly sysctls?: readonly { readonly name?: string }[];
  readonly seccompProfile?: Profile;
  readonly appArmorProfile?: Profile;
  readonly procMount?: string;
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly capabilities?: { readonly add?: readonly string[] };
}

const validateId = (field: string, id: number | undefined): Cause[] =>
  id === undefined || (id >= 0 && id <= ID_MAX) ? [] : [invalidValue(field, id, ID_TEXT)];

const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];

function validateProfile(field: string, profile: Profile | undefined, kind: 'seccomp' | 'AppArmor'): Cause[] {
  if (profile === undefined) return [];
  const { type = '', localhostProfile } = profile;
  const name = `${field}.localhostProfile`;
  if (type === '') {
    const why =
      kind === 'seccomp'
        ? 'type is required when seccompProfile is set'
        : 'type is required when appArmorProfile is set';
    return [required(`${field}.type`, why)];
  }
  if (!PROFILE_TYPES.includes(type)) return [notSupported(`${field}.type`, type, PROFILE_TYPES)];
  if (type !== 'Localhost') {
    const why = `can only be set when ${kind} type is Localhost`;
    return localhostProfile === undefined ? [] : [invalidValue(name, localhostProfile, why)];
  }
  if ((localhostProfile ?? '') === '') return [required(name, `must be set when ${kind} type is Localhost`)];
  const isBelow = !localhostProfile?.startsWith('/') && !localhostProfile?.split('/').includes('..');
  return kind === 'AppArmor' || isBelow ? [] : [invalidValue(name, localhostProfile, 'must be a relative path')];
}

/** A name of a kernel parameter has dots or slashes between its parts. */
const SYSCTL = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;
const SYSCTL_TEXT =
  'must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\.\\/])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$';

function validateSysctls(sysctls: readonly { readonly name?: string }[], field: string): Cause[] {
  const causes: Cause[] = [];
  const names = new Set<string>();
  for (const [index, { name = '' }] of sysctls.entries()) {
    const path = `${field}[${index}].name`;
    if (name === '') causes.push(required(path));
    else if (name.length > 253 || !name.split(/[./]/).every((part) => SYSCTL.test(part))) {
      causes.push(invalidValue(path, name, SYSCTL_TEXT));
    } else if (names.has(name)) causes.push(duplicate(path, name));
    names.add(name);
  }
  return causes;
}

const CHANGE_POLICIES = ['Always', 'OnRootMismatch'];

export function validatePodSecurity(context: SecurityContext = {}, field: string): Cause[] {
  const { fsGroupChangePolicy: policy } = context;
  return [
    ...validateId(`${field}.fsGroup`, context.fsGroup),
    ...validateId(`${field}.runAsUser`, context.runAsUser),
    ...validateId(`${field}.runAsGroup`, context.runAsGroup),
    ...(context.supplementalGroups ?? []).flatMap((id, index) =>
      validateId(`${field}.supplementalGroups[${index}]`, id),
    ),
    ...validateSysctls(context.sysctls ?? [], `${field}.sysctls`),
    ...(policy === undefined || CHANGE_POLICIES.includes(policy)
      ? []
      : [notSupported(`${field}.fsGroupChangePolicy`, policy, CHANGE_POLICIES)]),
    ...validateProfile(`${field}.seccompProfile`, context.seccompProfile, 'seccomp'),
    ...validateProfile(`${field}.appArmorProfile`, context.appArmorProfile, 'AppArmor'),
  ];
}

const PROC_MOUNTS = ['Default', 'Unmasked'];

export function validateContainerSecurity(context: SecurityContext, field: string): Cause[] {
  const { procMount, allowPrivilegeEscalation, privileged, capabilities } = context;
  const causes = [
    ...validateId(`${field}.runAsUser`, context.runAsUser),
    ...validateId(`${field}.runAsGroup`, context.runAsGroup),
    ...(procMount === undefined || PROC_MOUNTS.includes(procMount)
      ? []
      : [notSupported(`${field}.procMount`, procMount, PROC_MOUNTS)]),
    ...validateProfile(`${field}.seccompProfile`, context.seccompProfile, 'seccomp'),
    ...validateProfile(`${field}.appArmorProfile`, context.appArmorProfile, 'AppArmor'),
  ];
  if (allowPrivilegeEscalation !== false) return causes;
  if (privileged === true) {
    const why = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true';
    causes.push(invalidValue(field, context, why));
  }
  if ((capabilities?.add ?? []).includes('CAP_SYS_ADMIN')) {
    const why = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN';
    causes.push(invalidValue(field, context, why));
  }
  return causes;
}

const OPERATING_SYSTEMS = ['linux', 'windows'];

export function validateOs(spec: PodSpec): Cause[] {
  if (spec.os === undefined) return [];
  const { name = '' } = spec.os;
  if (name === '') return [required('spec.os.name', 'cannot be empty')];
  if (!OPERATING_SYSTEMS.includes(name)) return [notSupported('spec.os', name, OPERATING_SYSTEMS)];
  if (name === 'windows')
    return linuxFields(spec).map((field) => forbiddenField(field, 'cannot be set for a windows pod'));
  const contexts = [['spec.securityContext', spec.securityContext] as const, ...securityContexts(spec)];
  return contexts
    .filter(([, context]) => context?.windowsOptions !== undefined)
    .map(([path]) => forbiddenField(`${path}.windowsOptions`, 'windows options cannot be set for a linux pod'));
}
