/** Pod on creation and update (pkg/apis/core/validation/validation.go: ValidatePodCreate, ValidatePodUpdate). */

import {
  duplicate,
  errorsAt,
  forbiddenField,
  immutable,
  invalidValue,
  NOT_NEGATIVE,
  notSupported,
  oneOf,
  optionalAt,
  required,
  requiredOneOf,
  sameJson,
  tooMany,
} from '../../kubernetes/causes.ts';
import {
  amountCauses,
  compareQuantities,
  containerNameCauses,
  isNotOvercommittable,
  type Quantity,
  readAmount,
} from '../../kubernetes/quantity.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { addressErrors, addressFamily } from '../../kubernetes/validate-addresses.ts';
import {
  labelErrors,
  labelValueErrors,
  portNameErrors,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
  validateLabels,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import { INT32_MAX } from '../../kubernetes/whole-number.ts';
import { TAINT_EFFECTS } from '../nodes/validate.ts';
import type {
  Container,
  ContainerPort,
  KubePod,
  NodeSelectorTerm,
  PodSpec,
  ResourceList,
  ResourceRequirements,
  Toleration,
} from '../types.ts';
import { mayRestartAll, RESTART_ALL_ACTION, restartsAfter } from './container-restarts.ts';
import { OFFLINE_STOP_AFTER, parseOfflineStop } from './offline-stop.ts';
import { qosClassOf } from './pod-needs.ts';
import { MIRROR_POD, validateResize } from './resize.ts';
import { SITE_HUB } from './site-permit.ts';
import {
  portRange,
  refuseProbes,
  validateContainerSecurity,
  validateOs,
  validatePodSecurity,
  validateProbes,
} from './validate-containers.ts';
import { validateAffinity, validateSpreads } from './validate-scheduling.ts';
import { validateEnv, validateEnvFrom, validateMounts, validateVolumes } from './validate-volumes.ts';

const RESTART_POLICIES = ['Always', 'OnFailure', 'Never'];
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const MESSAGE_POLICIES = ['FallbackToLogsOnError', 'File'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const PREEMPTION_POLICIES = ['Never', 'PreemptLowerPriority'];
const PHASES = ['Failed', 'Pending', 'Running', 'Succeeded', 'Unknown'];

const ipAt = (field: string, address: string): Cause[] => errorsAt(field, address, addressErrors);

function validatePorts(ports: readonly ContainerPort[], field: string): Cause[] {
  const causes: Cause[] = [];
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const path = `${field}[${index}]`;
    const { name = '', containerPort = 0, hostPort = 0, protocol } = port;
    if (name !== '') {
      const errors = portNameErrors(name);
      for (const error of errors) causes.push(invalidValue(`${path}.name`, name, error));
      if (errors.length === 0 && names.has(name)) causes.push(duplicate(`${path}.name`, name));
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

/** Appends the causes to `causes`. Returns the well-formed quantities by resource name. */
function validateAmounts(amounts: ResourceList, field: string, causes: Cause[]): Map<string, Quantity> {
  const found = new Map<string, Quantity>();
  for (const [name, value] of Object.entries(amounts)) {
    const path = `${field}[${name}]`;
    causes.push(...containerNameCauses(name, path), ...amountCauses(name, value, path));
    const { amount } = readAmount(value, path);
    if (amount !== undefined) found.set(name, amount);
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
  const named = [...Object.keys(limits), ...Object.keys(requests)];
  if (
    named.some((name) => name.startsWith('hugepages-')) &&
    !named.some((name) => name === 'cpu' || name === 'memory')
  ) {
    causes.push(forbiddenField(field, 'HugePages require cpu or memory'));
  }
  return causes;
}

const RESIZED_RESOURCES = ['cpu', 'memory'];
const RESIZE_POLICIES = ['NotRequired', 'RestartContainer'];

/** Upstream reports the list, and not the item. */
function validateResizePolicies(policies: NonNullable<Container['resizePolicy']>, field: string, restarts: string) {
  const seen = new Set<string>();
  return policies.flatMap(({ resourceName = '', restartPolicy = '' }, index): Cause[] => {
    const isRepeated = seen.has(resourceName);
    seen.add(resourceName);
    const why = "must be 'NotRequired' when `restartPolicy` is 'Never'";
    return [
      ...(isRepeated ? [duplicate(`${field}[${index}]`, resourceName)] : []),
      ...requiredOneOf(field, resourceName, RESIZED_RESOURCES),
      ...requiredOneOf(field, restartPolicy, RESIZE_POLICIES),
      ...(restarts === 'Never' && restartPolicy !== 'NotRequired' ? [invalidValue(field, restartPolicy, why)] : []),
    ];
  });
}

/** What the containers of a pod have in common. */
interface PodParts {
  readonly volumes: ReadonlySet<string>;
  readonly graceSeconds: number;
  readonly restarts: string;
}

function validateContainer(container: Container, { volumes, restarts }: PodParts, field: string): Cause[] {
  const { name = '', image = '', securityContext } = container;
  const isPrivileged = securityContext?.['privileged'] === true;
  return [
    ...(name === '' ? [required(`${field}.name`)] : errorsAt(`${field}.name`, name, labelErrors)),
    ...(image === '' ? [required(`${field}.image`)] : []),
    ...oneOf(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, MESSAGE_POLICIES),
    ...validatePorts(container.ports ?? [], `${field}.ports`),
    ...validateEnv(container.env ?? [], `${field}.env`),
    ...validateEnvFrom(container.envFrom ?? [], `${field}.envFrom`),
    ...validateMounts(container.volumeMounts ?? [], { volumes, isPrivileged, field: `${field}.volumeMounts` }),
    ...oneOf(`${field}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES),
    ...validateResources(container.resources ?? {}, `${field}.resources`),
    ...validateResizePolicies(
      container.resizePolicy ?? [],
      `${field}.resizePolicy`,
      container.restartPolicy ?? restarts,
    ),
    ...(securityContext === undefined ? [] : validateContainerSecurity(securityContext, `${field}.securityContext`)),
  ];
}

/** Upstream identifies a host port by protocol, address and number. */
function validateHostPorts(containers: readonly Container[], fieldOf: (index: number) => string): Cause[] {
  const causes: Cause[] = [];
  const taken = new Set<string>();
  for (const [index, { ports = [] }] of containers.entries()) {
    for (const [at, { hostPort = 0, hostIP = '', protocol = '' }] of ports.entries()) {
      if (hostPort === 0) continue;
      const identity = `${protocol}/${hostIP}/${hostPort}`;
      if (taken.has(identity)) causes.push(duplicate(`${fieldOf(index)}.ports[${at}].hostPort`, identity));
      taken.add(identity);
    }
  }
  return causes;
}

function validateContainers(containers: readonly Container[], parts: PodParts, names: Set<string>): Cause[] {
  const field = 'spec.containers';
  if (containers.length === 0) return [required(field)];
  const causes = containers.flatMap((container, index) => {
    const path = `${field}[${index}]`;
    const { name = '' } = container;
    const found = validateContainer(container, parts, path);
    if (names.has(name)) found.push(duplicate(`${path}.name`, name));
    names.add(name);
    found.push(...validateProbes(container, path, parts.graceSeconds));
    found.push(...validateRestarts(container, path));
    return found;
  });
  return [...causes, ...validateHostPorts(containers, (index) => `${field}[${index}]`)];
}

function validateInitContainers(containers: readonly Container[], parts: PodParts, names: Set<string>): Cause[] {
  return containers.flatMap((container, index) => {
    const path = `spec.initContainers[${index}]`;
    const { name = '', restartPolicy } = container;
    const causes = validateContainer(container, parts, path);
    causes.push(...validateRestarts(container, path));
    if (name !== '' && names.has(name)) causes.push(duplicate(`${path}.name`, name));
    names.add(name);
    // Upstream reports each init container as the first one.
    causes.push(...validateHostPorts([container], () => 'spec.initContainers[0]'));
    const keepsRunning = restartPolicy === 'Always';
    return [
      ...causes,
      ...(keepsRunning ? validateProbes(container, path, parts.graceSeconds) : refuseProbes(container, path)),
    ];
  });
}

const RULES_MAX = 20;
const EXIT_CODES_MAX = 255;

/** Source: upstream pkg/apis/core/validation/validation.go (validateContainerRestartPolicy). */
function validateRestarts({ restartPolicy, restartPolicyRules: rules = [] }: Container, path: string): Cause[] {
  const known = (at: string, value: string, supported: readonly string[]): Cause[] =>
    oneOf(at, value, supported, notSupported(at, value, supported));
  const policyField = `${path}.restartPolicy`;
  const causes = restartPolicy === undefined ? [] : known(policyField, restartPolicy, RESTART_POLICIES);
  if (restartPolicy === undefined && rules.length > 0) {
    causes.push(required(policyField, 'must specify restartPolicy when restart rules are used'));
  }
  const field = `${path}.restartPolicyRules`;
  if (rules.length > RULES_MAX) return [...causes, tooMany(field, rules.length, RULES_MAX)];
  for (const [index, { action, exitCodes }] of rules.entries()) {
    const at = `${field}[${index}]`;
    causes.push(...known(`${at}.action`, action, ['Restart', RESTART_ALL_ACTION]));
    if (exitCodes === undefined) causes.push(required(`${at}.exitCodes`, 'must be specified'));
    else {
      const { operator, values = [] } = exitCodes;
      causes.push(...known(`${at}.exitCodes.operator`, operator, ['In', 'NotIn']));
      if (values.length > EXIT_CODES_MAX) causes.push(tooMany(`${at}.exitCodes.values`, values.length, EXIT_CODES_MAX));
    }
  }
  return causes;
}

const OPERATORS = ['Equal', 'Exists', 'Gt', 'Lt'];

/** `-0` and `007` are none (apimachinery/pkg/api/validate/content/decimal_int.go). */
const DECIMAL_INTEGER = /^(?:0|-?[1-9]\d*)$/;
const INT64_LENGTH_MAX = 20;
const isInt64 = (integer: string): boolean =>
  integer.length <= INT64_LENGTH_MAX && BigInt.asIntN(64, BigInt(integer)) === BigInt(integer);

/** Upstream allows `Gt` and `Lt` behind the gate TaintTolerationComparisonOperators. */
function validateCompared(value: string, field: string): Cause[] {
  if (!DECIMAL_INTEGER.test(value)) {
    return [invalidValue(field, value, 'must be a valid decimal integer in canonical form')];
  }
  return isInt64(value) ? [] : [invalidValue(field, value, 'must be a 64-bit signed integer')];
}

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
    } else if (operator === 'Gt' || operator === 'Lt') {
      causes.push(...validateCompared(toleration.value ?? '', `${path}.value`));
    } else causes.push(notSupported(`${path}.operator`, operator, OPERATORS));
    causes.push(...oneOf(`${path}.effect`, effect, TAINT_EFFECTS));
  }
  return causes;
}

/** Upstream (validatePodHostNetworkDeps) reports a template only for a host port that is set. */
function validateHostNetwork({ hostNetwork, containers = [] }: PodSpec): Cause[] {
  if (hostNetwork !== true) return [];
  return containers.flatMap(({ ports = [] }, index) =>
    ports.flatMap(({ hostPort = 0, containerPort = 0 }, at) =>
      hostPort === containerPort
        ? []
        : [
            invalidValue(
              `spec.containers[${index}].ports[${at}].hostPort`,
              hostPort,
              'must match `containerPort` when `hostNetwork` is true',
            ),
          ],
    ),
  );
}

const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_CHARACTERS_MAX = 2_048;

function validateDns({ dnsPolicy, dnsConfig }: PodSpec): Cause[] {
  const field = 'spec.dnsConfig';
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {};
  if (dnsPolicy === 'None') {
    if (dnsConfig === undefined) return [required(field, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    if (nameservers.length === 0) {
      const why = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
      return [required(`${field}.nameservers`, why)];
    }
  }
  const causes: Cause[] = [];
  if (nameservers.length > NAMESERVERS_MAX) {
    const why = `must not have more than ${NAMESERVERS_MAX} nameservers`;
    causes.push(invalidValue(`${field}.nameservers`, nameservers, why));
  }
  for (const [index, address] of nameservers.entries()) causes.push(...ipAt(`${field}.nameservers[${index}]`, address));
  if (searches.length > SEARCHES_MAX) {
    causes.push(invalidValue(`${field}.searches`, searches, `must not have more than ${SEARCHES_MAX} search paths`));
  }
  if (searches.join(' ').length > SEARCH_CHARACTERS_MAX) {
    const why = `must not have more than ${SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list`;
    causes.push(invalidValue(`${field}.searches`, searches, why));
  }
  for (const [index, search] of searches.entries()) {
    causes.push(...errorsAt(`${field}.searches[${index}]`, search.replace(/\.$/, ''), subdomainErrors));
  }
  for (const [index, { name = '' }] of options.entries()) {
    if (name === '') causes.push(required(`${field}.options[${index}]`, 'must not be empty'));
  }
  return causes;
}

const validateHostAliases = (aliases: NonNullable<PodSpec['hostAliases']>): Cause[] =>
  aliases.flatMap(({ ip = '', hostnames = [] }, index) => [
    ...ipAt(`spec.hostAliases[${index}].ip`, ip),
    ...hostnames.flatMap((name, at) => errorsAt(`spec.hostAliases[${index}].hostnames[${at}]`, name, subdomainErrors)),
  ]);

function validateGates(gates: readonly { readonly name?: string }[]): Cause[] {
  const names = new Set<string>();
  return gates.flatMap(({ name = '' }, index) => {
    const field = `spec.schedulingGates[${index}]`;
    const causes = errorsAt(field, name, qualifiedNameErrors);
    if (names.has(name)) causes.push(duplicate(field, name));
    names.add(name);
    return causes;
  });
}

/** The spec of a pod or of a template. Paths start with `spec`. */
export function validatePodSpec(spec: PodSpec): Cause[] {
  const volumes = validateVolumes(spec.volumes ?? [], 'spec.volumes');
  const { containers = [], initContainers = [], terminationGracePeriodSeconds: graceSeconds = 0 } = spec;
  const names = new Set<string>();
  const parts = { volumes: volumes.names, graceSeconds, restarts: spec.restartPolicy ?? '' };
  return [
    ...volumes.causes,
    ...validateContainers(containers, parts, names),
    ...validateInitContainers(initContainers, parts, names),
    ...validateHostNetwork(spec),
    ...oneOf('spec.restartPolicy', spec.restartPolicy, RESTART_POLICIES),
    ...oneOf('spec.dnsPolicy', spec.dnsPolicy, DNS_POLICIES),
    ...validateLabels(spec.nodeSelector, 'spec.nodeSelector'),
    ...validatePodSecurity(spec.securityContext, 'spec.securityContext'),
    ...validateDns(spec),
    ...validateGates(spec.schedulingGates ?? []),
    ...(spec.affinity === undefined ? [] : validateAffinity(spec.affinity, 'spec.affinity')),
    ...validateSpreads(spec.topologySpreadConstraints ?? [], 'spec.topologySpreadConstraints'),
    ...validateTolerations(spec.tolerations ?? [], 'spec.tolerations'),
    ...validateHostAliases(spec.hostAliases ?? []),
    ...validateOs(spec),
    ...(spec.overhead === undefined ? [] : validateResources({ limits: spec.overhead }, 'spec.overhead')),
    ...validateScalars(spec),
  ];
}

function validateScalars(spec: PodSpec): Cause[] {
  const { terminationGracePeriodSeconds: grace = 0, activeDeadlineSeconds: deadline } = spec;
  const causes = [
    ...oneOf('spec.preemptionPolicy', spec.preemptionPolicy, PREEMPTION_POLICIES),
    ...optionalAt('spec.nodeName', spec.nodeName, subdomainErrors),
    ...optionalAt('spec.serviceAccountName', spec.serviceAccountName, subdomainErrors),
    ...optionalAt('spec.priorityClassName', spec.priorityClassName, subdomainErrors),
    ...optionalAt('spec.hostname', spec.hostname, labelErrors),
    ...optionalAt('spec.subdomain', spec.subdomain, labelErrors),
    ...(spec.runtimeClassName === undefined
      ? []
      : errorsAt('spec.runtimeClassName', spec.runtimeClassName, subdomainErrors)),
  ];
  for (const [index, gate] of (spec.readinessGates ?? []).entries()) {
    causes.push(
      ...errorsAt(`spec.readinessGates[${index}].conditionType`, gate.conditionType ?? '', qualifiedNameErrors),
    );
  }
  if (spec.hostPID === true && spec.shareProcessNamespace === true) {
    const why = 'ShareProcessNamespace and HostPID cannot both be enabled';
    causes.push(invalidValue('spec.securityContext.shareProcessNamespace', true, why));
  }
  if (grace < 0) causes.push(invalidValue('spec.terminationGracePeriodSeconds', grace, NOT_NEGATIVE));
  if (deadline !== undefined && (deadline < 1 || deadline > INT32_MAX)) {
    causes.push(invalidValue('spec.activeDeadlineSeconds', deadline, `must be between 1 and ${INT32_MAX}, inclusive`));
  }
  return causes;
}

const IMMUTABLE_TEXT =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** The spec without the fields that an update may change. `isGated`: the pod has scheduling gates. */
function immutableSpec(spec: PodSpec, isGated: boolean): PodSpec {
  const { activeDeadlineSeconds: _deadline, tolerations: _tolerations, schedulingGates: _gates, ...fixed } = spec;
  const withoutImages = (containers: readonly Container[] = []): Container[] =>
    containers.map(({ image: _image, ...container }) => container);
  const { nodeSelector: _selector, affinity: { nodeAffinity: _nodes, ...affinity } = {}, ...elsewhere } = fixed;
  return {
    ...(isGated ? { ...elsewhere, affinity } : fixed),
    containers: withoutImages(spec.containers),
    initContainers: withoutImages(spec.initContainers),
  };
}

/** The same text for tolerations that differ at most in their tolerationSeconds. */
const exceptSeconds = ({ key, operator, value, effect }: Toleration): string =>
  JSON.stringify([key, operator, value, effect].map((each) => each ?? ''));

const ADDITIONS_ONLY = 'only additions are allowed (no mutations or deletions)';
const TERMS = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';

const requiredTerms = ({ affinity }: PodSpec): readonly NodeSelectorTerm[] =>
  affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];

const LISTS = ['matchExpressions', 'matchFields'] as const;

/** A term without requirements matches no node, so it may get none. */
function isTightened(next: NodeSelectorTerm, old: NodeSelectorTerm): boolean {
  const isEmpty = LISTS.every((list) => (old[list] ?? []).length === 0);
  return LISTS.every((list) => {
    const [after, before] = [next[list] ?? [], old[list] ?? []];
    return sameJson(isEmpty ? after : after.slice(0, before.length), before);
  });
}

/** A pod with scheduling gates may come to fit fewer nodes. Source: pkg/apis/core/validation (ValidatePodUpdate). */
function validateGatedUpdate(next: PodSpec, old: PodSpec): Cause[] {
  const { nodeSelector = {} } = next;
  const isKept = Object.entries(old.nodeSelector ?? {}).every(([key, value]) => nodeSelector[key] === value);
  const causes = isKept ? [] : [invalidValue('spec.nodeSelector', nodeSelector, ADDITIONS_ONLY)];
  const [terms, before] = [requiredTerms(next), requiredTerms(old)];
  if (before.length === 0) return causes;
  if (terms.length !== before.length) {
    const why = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    return [...causes, invalidValue(TERMS, terms, why)];
  }
  const changed = terms.flatMap((term, index) =>
    isTightened(term, before[index]!) ? [] : [invalidValue(`${TERMS}[${index}]`, term, ADDITIONS_ONLY)],
  );
  return [...causes, ...changed];
}

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
  const kept = new Set((next.tolerations ?? []).map(exceptSeconds));
  if (!(old.tolerations ?? []).every((existing) => kept.has(exceptSeconds(existing)))) {
    const why = 'existing toleration can not be modified except its tolerationSeconds';
    causes.push(forbiddenField('spec.tolerations', why));
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
  if (sameJson(next, old)) return causes;
  const isGated = oldGates.size > 0;
  if (isGated) causes.push(...validateGatedUpdate(next, old));
  const [oldClass, nextClass] = [qosClassOf(old), qosClassOf(next)];
  if (oldClass !== nextClass) causes.push(invalidValue('metadata', oldClass, 'Pod QoS is immutable'));
  if (!sameJson(immutableSpec(next, isGated), immutableSpec(old, isGated)))
    causes.push(forbiddenField('spec', IMMUTABLE_TEXT));
  return causes;
}

/** Containers that have terminated and are not restarted stay so. */
function validateTransitions({ status = {} }: KubePod, old: KubePod | undefined): Cause[] {
  const { restartPolicy: policy = 'Always', containers = [], initContainers = [] } = old?.spec ?? {};
  if (policy === 'Always' || mayRestartAll({ containers, initContainers })) return [];
  const specs = new Map([...containers, ...initContainers].map((each) => [each.name, each]));
  return (['containerStatuses', 'initContainerStatuses'] as const).flatMap((list) => {
    const running = new Set(
      (status[list] ?? []).filter(({ state }) => state?.terminated === undefined).map(({ name }) => name),
    );
    return (old?.status?.[list] ?? []).flatMap(({ name, state }, index) => {
      const ended = state?.terminated;
      if (ended === undefined || !running.has(name)) return [];
      if (restartsAfter(ended.exitCode ?? 0, specs.get(name) ?? {}, policy)) return [];
      const field = `status.${list}[${index}].state`;
      return [forbiddenField(field, 'may not be transitioned to non-terminated state')];
    });
  });
}

function validateStatus(pod: KubePod, old: KubePod | undefined): Cause[] {
  const status = pod.status ?? {};
  const causes = oneOf('status.phase', status.phase, PHASES);
  const oldClass = old?.status?.qosClass;
  if (oldClass !== undefined) causes.push(...immutable('status.qosClass', status.qosClass, oldClass));
  const { nominatedNodeName: nominated = '' } = status;
  if (nominated !== '' && nominated !== old?.status?.nominatedNodeName) {
    causes.push(...errorsAt('status.nominatedNodeName', nominated, subdomainErrors));
  }
  for (const [index, { type = '' }] of (status.conditions ?? []).entries()) {
    // Upstream writes this path below the metadata, and its end with a capital letter.
    causes.push(...errorsAt(`metadata.conditions[${index}].Type`, type, qualifiedNameErrors));
  }
  const [firstHost] = status.hostIPs ?? [];
  if (firstHost !== undefined && (status.hostIP ?? '') !== (firstHost.ip ?? '')) {
    causes.push(invalidValue('status.hostIPs[0].ip', firstHost.ip ?? '', 'must be equal to `hostIP`'));
  }
  causes.push(...validateTransitions(pod, old));
  for (const [list, owner] of [
    ['podIPs', 'pod'],
    ['hostIPs', 'host'],
  ] as const) {
    const addresses = (status[list] ?? []).map(({ ip = '' }) => ip);
    const seen = new Set<string>();
    for (const [index, address] of addresses.entries()) {
      const path = `status.${list}[${index}]`;
      causes.push(...ipAt(path, address));
      if (seen.has(address)) causes.push(duplicate(path, { ip: address }));
      seen.add(address);
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

function validateCreation({ nodeName = '', schedulingGates = [], ephemeralContainers = [] }: PodSpec): Cause[] {
  const causes: Cause[] = [];
  if (ephemeralContainers.length > 0) {
    causes.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if (nodeName !== '' && schedulingGates.length > 0) {
    causes.push(forbiddenField('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return causes;
}

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

/** Annotations of a pod or a template that have a form. */
export function validatePodAnnotations(
  annotations: Readonly<Record<string, string>> = {},
  { nodeName = '', terminationGracePeriodSeconds }: PodSpec,
  field: string,
): Cause[] {
  const causes: Cause[] = [];
  const mirror = annotations[MIRROR_POD];
  if (mirror !== undefined && nodeName === '') {
    const why = 'must set spec.nodeName if mirror pod annotation is set';
    causes.push(invalidValue(`${field}[${MIRROR_POD}]`, mirror, why));
  }
  if (annotations[SITE_HUB] !== undefined) {
    causes.push(forbiddenField(`${field}[${SITE_HUB}]`, 'a binding sets it, by the SitePolicies'));
  }
  const cost = annotations[DELETION_COST];
  if (cost !== undefined && !isInt32(cost)) {
    causes.push(invalidValue(`${field}[${DELETION_COST}]`, cost, 'must be a 32bit integer'));
  }
  const offlineStop = annotations[OFFLINE_STOP_AFTER];
  if (offlineStop !== undefined && parseOfflineStop(offlineStop) === undefined) {
    const why = 'must be a duration from 10m to 720h, such as 2h';
    causes.push(invalidValue(`${field}[${OFFLINE_STOP_AFTER}]`, offlineStop, why));
  }
  if (offlineStop !== undefined && terminationGracePeriodSeconds === 0) {
    const why = 'needs a terminationGracePeriodSeconds above 0: without one, a deletion does not wait for the machine';
    causes.push(invalidValue(`${field}[${OFFLINE_STOP_AFTER}]`, offlineStop, why));
  }
  return causes;
}

/** A machine without a link acts by the values that it knows: the cluster must not count by others. */
function validateOfflineUpdate(next: KubePod, old: KubePod): Cause[] {
  return [OFFLINE_STOP_AFTER, SITE_HUB].flatMap((name) => {
    const [before, after] = [old, next].map(({ metadata }) => metadata.annotations?.[name]);
    return immutable(`metadata.annotations[${name}]`, after, before);
  });
}

function withoutSiteHub({ [SITE_HUB]: _, ...others }: Readonly<Record<string, string>> = {}) {
  return others;
}

const isInt32 = (text: string): boolean =>
  /^-?(0|[1-9]\d{0,9})$/.test(text) && Number(text) <= INT32_MAX && Number(text) >= -INT32_MAX - 1;

export function validatePod(pod: KubePod, old: KubePod | undefined, subresource: string): Cause[] {
  const metadata = [
    ...validateObjectMetadata(pod, old, { namespaced: true, name: subdomainName }),
    ...(old === undefined ? [] : validateOfflineUpdate(pod, old)),
  ];
  if (subresource === 'status') return [...metadata, ...validateStatus(pod, old)];
  const spec = pod.spec ?? {};
  return [
    ...metadata,
    ...validatePodAnnotations(
      old === undefined ? pod.metadata.annotations : withoutSiteHub(pod.metadata.annotations),
      spec,
      'metadata.annotations',
    ),
    ...validatePodSpec(spec),
    ...(old === undefined
      ? validateCreation(spec)
      : subresource === 'resize'
        ? validateResize(spec, old)
        : validateSpecUpdate(spec, old.spec ?? {})),
  ];
}
