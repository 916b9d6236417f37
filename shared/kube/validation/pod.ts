/** Pod on creation and update (pkg/apis/core/validation/validation.go: ValidatePodCreate, ValidatePodUpdate). */
import { compareQuantities, parseQuantity, type Quantity } from '../quantity.ts';
import type { Cause } from '../status.ts';
import type {
  Container,
  ContainerPort,
  EnvVar,
  KubePod,
  PodSpec,
  ResourceList,
  ResourceRequirements,
  Toleration,
  Volume,
  VolumeMount,
} from '../types.ts';
import { addressFamily } from './addresses.ts';
import {
  duplicate,
  forbiddenField,
  immutable,
  invalidValue,
  NOT_NEGATIVE,
  notFoundValue,
  notSupported,
  required,
  sameJson,
} from './causes.ts';
import { validateLabels, validateObjectMetadata } from './metadata.ts';
import {
  envVarErrors,
  labelErrors,
  labelValueErrors,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
} from './names.ts';
import { TAINT_EFFECTS } from './node.ts';

const RESTART_POLICIES = ['Always', 'OnFailure', 'Never'];
const DNS_POLICIES = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'];
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const MESSAGE_POLICIES = ['FallbackToLogsOnError', 'File'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const PREEMPTION_POLICIES = ['Never', 'PreemptLowerPriority'];
const PHASES = ['Failed', 'Pending', 'Running', 'Succeeded', 'Unknown'];
const INT32_MAX = 2_147_483_647;

const oneOf = (field: string, value: string | undefined, supported: readonly string[]): Cause[] => {
  if (value === undefined || value === '') return [];
  return supported.includes(value) ? [] : [notSupported(field, value, supported)];
};

const errorsAt = (field: string, value: string, errorsOf: (value: string) => string[]): Cause[] =>
  errorsOf(value).map((error) => invalidValue(field, value, error));

/** For optional names: an absent or empty one is valid. */
const optional = (field: string, value: string | undefined, errorsOf: (value: string) => string[]): Cause[] =>
  value === undefined || value === '' ? [] : errorsAt(field, value, errorsOf);

export const portRange = (field: string, value: number): Cause[] =>
  value >= 1 && value <= 65_535 ? [] : [invalidValue(field, value, 'must be between 1 and 65535, inclusive')];

function validatePorts(ports: readonly ContainerPort[], field: string): Cause[] {
  const causes: Cause[] = [];
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const path = `${field}[${index}]`;
    const { name = '', containerPort = 0, hostPort = 0, protocol } = port;
    if (name !== '') {
      if (!/^(?=.*[a-z])[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?$/.test(name) || name.includes('--')) {
        causes.push(
          invalidValue(
            `${path}.name`,
            name,
            'must be 15 characters or less of lower case letters, digits and single hyphens, with a letter and neither hyphen first nor last',
          ),
        );
      }
      if (names.has(name)) causes.push(duplicate(`${path}.name`, name));
      names.add(name);
    }
    if (containerPort === 0) causes.push(required(`${path}.containerPort`));
    else causes.push(...portRange(`${path}.containerPort`, containerPort));
    if (hostPort !== 0) causes.push(...portRange(`${path}.hostPort`, hostPort));
    if (!protocol) causes.push(required(`${path}.protocol`));
    else causes.push(...oneOf(`${path}.protocol`, protocol, PROTOCOLS));
  }
  return causes;
}

/** Resource names without a prefix that a container may request. */
const isStandardResource = (name: string): boolean =>
  ['cpu', 'memory', 'ephemeral-storage'].includes(name) || name.startsWith('hugepages-');
/** Resources that cannot be overcommitted: request and limit must be equal. Huge pages and extended resources. */
const isNotOvercommittable = (name: string): boolean => name.startsWith('hugepages-') || name.includes('/');

/** Appends the causes to `causes`. Returns the well-formed quantities by resource name. */
function validateAmounts(amounts: ResourceList, field: string, causes: Cause[]): Map<string, Quantity> {
  const found = new Map<string, Quantity>();
  for (const [name, value] of Object.entries(amounts)) {
    const path = `${field}[${name}]`;
    causes.push(...errorsAt(path, name, qualifiedNameErrors));
    if (!name.includes('/') && !isStandardResource(name)) {
      causes.push(invalidValue(path, name, 'must be a standard resource for containers'));
    }
    const parsed = parseQuantity(String(value));
    if (parsed.kind === 'malformed') causes.push(invalidValue(path, value, parsed.message));
    else {
      if (parsed.quantity.nanos < 0n) causes.push(invalidValue(path, value, NOT_NEGATIVE));
      found.set(name, parsed.quantity);
    }
  }
  return found;
}

export function validateResources({ limits = {}, requests = {} }: ResourceRequirements, field: string): Cause[] {
  const causes: Cause[] = [];
  const limitOf = validateAmounts(limits, `${field}.limits`, causes);
  for (const [name, request] of validateAmounts(requests, `${field}.requests`, causes)) {
    const limit = limitOf.get(name);
    const path = `${field}.requests`;
    if (limit === undefined) {
      if (isNotOvercommittable(name)) {
        causes.push(required(`${field}.limits`, 'Limit must be set for non overcommitable resources'));
      }
    } else if (compareQuantities(request, limit) > 0) {
      causes.push(invalidValue(path, requests[name], `must be less than or equal to ${name} limit of ${limits[name]}`));
    } else if (isNotOvercommittable(name) && compareQuantities(request, limit) !== 0) {
      causes.push(invalidValue(path, requests[name], `must be equal to ${name} limit of ${limits[name]}`));
    }
  }
  return causes;
}

function validateMounts(mounts: readonly VolumeMount[], volumes: ReadonlySet<string>, field: string): Cause[] {
  const causes: Cause[] = [];
  const paths = new Set<string>();
  for (const [index, { name = '', mountPath = '' }] of mounts.entries()) {
    const path = `${field}[${index}]`;
    if (name === '') causes.push(required(`${path}.name`));
    else if (!volumes.has(name)) causes.push(notFoundValue(`${path}.name`, name));
    if (mountPath === '') causes.push(required(`${path}.mountPath`));
    else if (paths.has(mountPath)) causes.push(invalidValue(`${path}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
  }
  return causes;
}

function validateEnv(variables: readonly EnvVar[], field: string): Cause[] {
  const causes: Cause[] = [];
  for (const [index, { name = '', value = '', valueFrom = {} }] of variables.entries()) {
    const path = `${field}[${index}]`;
    if (name === '') causes.push(required(`${path}.name`));
    else causes.push(...errorsAt(`${path}.name`, name, envVarErrors));
    if (value !== '' && Object.keys(valueFrom).length > 0) {
      causes.push(invalidValue(`${path}.valueFrom`, '', 'may not be specified when `value` is not empty'));
    }
  }
  return causes;
}

function validateContainers(
  containers: readonly Container[] | undefined,
  volumes: ReadonlySet<string>,
  names: Set<string>,
  field: string,
): Cause[] {
  const causes: Cause[] = [];
  for (const [index, container] of (containers ?? []).entries()) {
    const path = `${field}[${index}]`;
    const { name = '', image = '' } = container;
    if (name === '') causes.push(required(`${path}.name`));
    else {
      causes.push(...errorsAt(`${path}.name`, name, labelErrors));
      if (names.has(name)) causes.push(duplicate(`${path}.name`, name));
      names.add(name);
    }
    if (image === '') causes.push(required(`${path}.image`));
    else if (image !== image.trim()) {
      causes.push(invalidValue(`${path}.image`, image, 'must not have leading or trailing whitespace'));
    }
    causes.push(
      ...oneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES),
      ...oneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, MESSAGE_POLICIES),
      ...validatePorts(container.ports ?? [], `${path}.ports`),
      ...validateEnv(container.env ?? [], `${path}.env`),
      ...validateMounts(container.volumeMounts ?? [], volumes, `${path}.volumeMounts`),
      ...validateResources(container.resources ?? {}, `${path}.resources`),
    );
  }
  return causes;
}

function validateVolumes(volumes: readonly Volume[], field: string): { causes: Cause[]; names: Set<string> } {
  const causes: Cause[] = [];
  const names = new Set<string>();
  for (const [index, volume] of volumes.entries()) {
    const path = `${field}[${index}]`;
    const { name = '' } = volume;
    if (name === '') causes.push(required(`${path}.name`));
    else {
      causes.push(...errorsAt(`${path}.name`, name, labelErrors));
      if (names.has(name)) causes.push(duplicate(`${path}.name`, name));
      names.add(name);
    }
    const sources = Object.keys(volume).filter((key) => key !== 'name');
    if (sources.length === 0) causes.push(required(path, 'must specify a volume type'));
    for (const extra of sources.slice(1)) {
      causes.push(forbiddenField(`${path}.${extra}`, 'may not specify more than 1 volume type'));
    }
  }
  return { causes, names };
}

const OPERATORS = ['Equal', 'Exists'];

export function validateTolerations(tolerations: readonly Toleration[], field: string): Cause[] {
  const causes: Cause[] = [];
  for (const [index, toleration] of tolerations.entries()) {
    const path = `${field}[${index}]`;
    const key = toleration.key ?? '';
    const operator = toleration.operator ?? '';
    const effect: string = toleration.effect ?? '';
    if (key !== '') causes.push(...errorsAt(`${path}.key`, key, qualifiedNameErrors));
    else if (operator !== 'Exists') {
      causes.push(
        invalidValue(
          `${path}.operator`,
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (toleration.tolerationSeconds !== undefined && effect !== 'NoExecute') {
      causes.push(invalidValue(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    if (operator === '' || operator === 'Equal') {
      causes.push(...errorsAt(`${path}.operator`, toleration.value ?? '', labelValueErrors));
    } else if (operator === 'Exists') {
      if ((toleration.value ?? '') !== '') {
        causes.push(invalidValue(`${path}.operator`, toleration, "value must be empty when `operator` is 'Exists'"));
      }
    } else causes.push(notSupported(`${path}.operator`, operator, OPERATORS));
    causes.push(...oneOf(`${path}.effect`, effect, TAINT_EFFECTS));
  }
  return causes;
}

/** The spec of a pod or of a template. Paths start with `spec`. */
export function validatePodSpec(spec: PodSpec): Cause[] {
  const volumes = validateVolumes(spec.volumes ?? [], 'spec.volumes');
  const { containers = [] } = spec;
  const names = new Set<string>();
  const causes = [...volumes.causes];
  if (containers.length === 0) causes.push(required('spec.containers'));
  causes.push(
    ...validateContainers(containers, volumes.names, names, 'spec.containers'),
    ...validateContainers(spec.initContainers, volumes.names, names, 'spec.initContainers'),
    ...oneOf('spec.restartPolicy', spec.restartPolicy, RESTART_POLICIES),
    ...oneOf('spec.dnsPolicy', spec.dnsPolicy, DNS_POLICIES),
    ...oneOf('spec.preemptionPolicy', spec.preemptionPolicy, PREEMPTION_POLICIES),
    ...validateLabels(spec.nodeSelector, 'spec.nodeSelector'),
    ...optional('spec.nodeName', spec.nodeName, subdomainErrors),
    ...optional('spec.serviceAccountName', spec.serviceAccountName, subdomainErrors),
    ...optional('spec.priorityClassName', spec.priorityClassName, subdomainErrors),
    ...optional('spec.hostname', spec.hostname, labelErrors),
    ...optional('spec.subdomain', spec.subdomain, labelErrors),
    ...validateTolerations(spec.tolerations ?? [], 'spec.tolerations'),
  );
  for (const [index, gate] of (spec.readinessGates ?? []).entries()) {
    causes.push(
      ...errorsAt(`spec.readinessGates[${index}].conditionType`, gate.conditionType ?? '', qualifiedNameErrors),
    );
  }
  const { terminationGracePeriodSeconds: grace = 0, activeDeadlineSeconds: deadline } = spec;
  if (grace < 0) {
    causes.push(invalidValue('spec.terminationGracePeriodSeconds', grace, NOT_NEGATIVE));
  }
  if (deadline !== undefined && (deadline < 1 || deadline > INT32_MAX)) {
    causes.push(invalidValue('spec.activeDeadlineSeconds', deadline, `must be between 1 and ${INT32_MAX}, inclusive`));
  }
  return causes;
}

const IMMUTABLE_TEXT =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** The spec without the fields that an update may change. */
function immutableSpec(spec: PodSpec): PodSpec {
  const { activeDeadlineSeconds: _deadline, tolerations: _tolerations, schedulingGates: _gates, ...fixed } = spec;
  const withoutImages = (containers: readonly Container[] = []): Container[] =>
    containers.map(({ image: _image, ...container }) => container);
  return {
    ...fixed,
    containers: withoutImages(spec.containers),
    initContainers: withoutImages(spec.initContainers),
  };
}

/** True when two tolerations differ at most in their tolerationSeconds. */
const sameExceptSeconds = (left: Toleration, right: Toleration): boolean =>
  (left.key ?? '') === (right.key ?? '') &&
  (left.operator ?? '') === (right.operator ?? '') &&
  (left.value ?? '') === (right.value ?? '') &&
  (left.effect ?? '') === (right.effect ?? '');

function validateSpecUpdate(next: PodSpec, old: PodSpec): Cause[] {
  const causes: Cause[] = [];
  for (const field of ['containers', 'initContainers'] as const) {
    if ((next[field] ?? []).length !== (old[field] ?? []).length) {
      return [forbiddenField(`spec.${field}`, 'pod updates may not add or remove containers')];
    }
  }
  const oldDeadline = old.activeDeadlineSeconds;
  const deadline = next.activeDeadlineSeconds;
  if (oldDeadline !== undefined) {
    if (deadline === undefined) {
      causes.push(
        invalidValue('spec.activeDeadlineSeconds', null, 'must not update from a positive integer to nil value'),
      );
    } else if (deadline > oldDeadline) {
      causes.push(invalidValue('spec.activeDeadlineSeconds', deadline, 'must be less than or equal to previous value'));
    }
  }
  const tolerations = next.tolerations ?? [];
  for (const existing of old.tolerations ?? []) {
    if (!tolerations.some((toleration) => sameExceptSeconds(toleration, existing))) {
      causes.push(
        forbiddenField('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds'),
      );
    }
  }
  const oldGates = new Set((old.schedulingGates ?? []).map(({ name = '' }) => name));
  for (const [index, { name = '' }] of (next.schedulingGates ?? []).entries()) {
    if (!oldGates.has(name)) {
      causes.push(
        forbiddenField(
          `spec.schedulingGates[${index}].name`,
          `only deletion is allowed, but found new scheduling gate '${name}'`,
        ),
      );
    }
  }
  if (!sameJson(immutableSpec(next), immutableSpec(old))) causes.push(forbiddenField('spec', IMMUTABLE_TEXT));
  return causes;
}

function validateStatus(pod: KubePod, old: KubePod | undefined): Cause[] {
  const status = pod.status ?? {};
  const causes = oneOf('status.phase', status.phase, PHASES);
  const oldClass = old?.status?.qosClass;
  if (oldClass !== undefined) causes.push(...immutable('status.qosClass', status.qosClass, oldClass));
  for (const [list, owner] of [
    ['podIPs', 'pod'],
    ['hostIPs', 'host'],
  ] as const) {
    const addresses = (status[list] ?? []).map(({ ip = '' }) => ip);
    for (const [index, address] of addresses.entries()) {
      const path = `status.${list}[${index}]`;
      if (addressFamily(address, 'ip') === undefined) {
        causes.push(invalidValue(path, address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'));
      }
      if (addresses.indexOf(address) < index) causes.push(duplicate(path, { ip: address }));
    }
    const families = new Set(addresses.map((address) => addressFamily(address, 'ip')));
    if (addresses.length > 1 && families.size < addresses.length) {
      causes.push(
        invalidValue(`status.${list}`, addresses, `may specify no more than one IP for each IP family of a ${owner}`),
      );
    }
  }
  return causes;
}

export function validatePod(pod: KubePod, old: KubePod | undefined, subresource: string): Cause[] {
  const metadata = validateObjectMetadata(pod, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return [...metadata, ...validateStatus(pod, old)];
  const spec = pod.spec ?? {};
  const causes = [...metadata, ...validatePodSpec(spec)];
  if (old === undefined) {
    return (spec.ephemeralContainers ?? []).length === 0
      ? causes
      : [...causes, forbiddenField('spec.ephemeralContainers', 'cannot be set on create')];
  }
  return [...causes, ...validateSpecUpdate(spec, old.spec ?? {})];
}
