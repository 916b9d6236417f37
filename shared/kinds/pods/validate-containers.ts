/**
 * Handlers of probes and hooks, and security contexts (pkg/apis/core/validation/validation.go: validateProbe,
 * validateLifecycle, ValidateSecurityContext, validatePodSpecSecurityContext). With the operating system of a pod,
 * and fields that only the other one has (validateOS, validateLinux, validateWindows). A pod without `spec.os` may have
 * all of them.
 */

import {
  duplicate,
  forbiddenField,
  invalidValue,
  NOT_NEGATIVE,
  notSupported,
  required,
} from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { httpHeaderErrors, portNameErrors } from '../../kubernetes/validate-metadata.ts';
import type { Container, IntOrString, LifecycleHandler, PodSpec, Probe } from '../types.ts';
import { linuxFields, securityContexts } from './linux-fields.ts';

const SCHEMES = ['HTTP', 'HTTPS'];
const PORT_RANGE = 'must be between 1 and 65535, inclusive';

export const portRange = (field: string, value: number): Cause[] =>
  value >= 1 && value <= 65_535 ? [] : [invalidValue(field, value, PORT_RANGE)];

export const validatePort = (field: string, port: IntOrString = 0): Cause[] =>
  typeof port === 'number'
    ? portRange(field, port)
    : portNameErrors(port).map((error) => invalidValue(field, port, error));

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;
type Handler = LifecycleHandler & Pick<Probe, 'grpc'>;

const VALIDATORS: Readonly<
  Record<(typeof HANDLERS)[number], (handler: Handler, field: string, graceSeconds: number) => Cause[]>
> = {
  exec: ({ exec }, field) => ((exec?.command ?? []).length === 0 ? [required(`${field}.command`)] : []),
  httpGet({ httpGet = {} }, field) {
    const { path = '', port, scheme = '', httpHeaders = [] } = httpGet;
    const causes = path === '' ? [required(`${field}.path`)] : [];
    causes.push(...validatePort(`${field}.port`, port));
    if (!SCHEMES.includes(scheme)) causes.push(notSupported(`${field}.scheme`, scheme, SCHEMES));
    for (const { name = '' } of httpHeaders) {
      for (const error of httpHeaderErrors(name)) causes.push(invalidValue(`${field}.httpHeaders`, name, error));
    }
    return causes;
  },
  tcpSocket: ({ tcpSocket }, field) => validatePort(`${field}.port`, tcpSocket?.port),
  grpc: ({ grpc }, field) => portRange(`${field}.port`, grpc?.port ?? 0),
  sleep({ sleep }, field, graceSeconds) {
    const seconds = sleep?.seconds ?? 0;
    const why = `must be greater than 0 and less than terminationGracePeriodSeconds (${graceSeconds}). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.`;
    return seconds > 0 && seconds <= graceSeconds ? [] : [invalidValue(`${field}.seconds`, seconds, why)];
  },
};

function validateHandler(handler: Handler, field: string, graceSeconds: number): Cause[] {
  const [first, ...more] = HANDLERS.filter((name) => handler[name] !== undefined);
  if (first === undefined) return [required(field, 'must specify a handler type')];
  return [
    ...VALIDATORS[first](handler, `${field}.${first}`, graceSeconds),
    ...more.map((name) => forbiddenField(`${field}.${name}`, 'may not specify more than 1 handler type')),
  ];
}

const COUNTS = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const;

function validateProbe(name: ProbeName, probe: Probe, field: string, graceSeconds: number): Cause[] {
  const causes = validateHandler(probe, field, graceSeconds);
  for (const count of COUNTS) {
    const value = probe[count] ?? 0;
    if (value < 0) causes.push(invalidValue(`${field}.${count}`, value, NOT_NEGATIVE));
  }
  const { terminationGracePeriodSeconds: grace, successThreshold = 1 } = probe;
  const path = `${field}.terminationGracePeriodSeconds`;
  if (grace !== undefined && grace <= 0) causes.push(invalidValue(path, grace, 'must be greater than 0'));
  if (name !== 'readinessProbe') {
    if (successThreshold !== 1) causes.push(invalidValue(`${field}.successThreshold`, successThreshold, 'must be 1'));
  } else if (grace !== undefined) causes.push(invalidValue(path, grace, 'must not be set for readinessProbes'));
  return causes;
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
type ProbeName = (typeof PROBES)[number];

/** Probes and hooks of a container that keeps running: every one but an ordinary init container. */
export function validateProbes(container: Container, field: string, graceSeconds: number): Cause[] {
  const hooks = (['postStart', 'preStop'] as const).flatMap((hook) => {
    const handler = container.lifecycle?.[hook];
    return handler === undefined ? [] : validateHandler(handler, `${field}.lifecycle.${hook}`, graceSeconds);
  });
  const probes = PROBES.flatMap((name) => {
    const probe = container[name];
    return probe === undefined ? [] : validateProbe(name, probe, `${field}.${name}`, graceSeconds);
  });
  return [...hooks, ...probes];
}

/** An init container terminates before its pod runs: nothing probes it, and no hook runs. */
export const refuseProbes = (container: Container, field: string): Cause[] =>
  (['lifecycle', ...PROBES] as const)
    .filter((name) => container[name] !== undefined)
    .map((name) =>
      forbiddenField(`${field}.${name}`, 'may not be set for init containers without restartPolicy=Always'),
    );

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
