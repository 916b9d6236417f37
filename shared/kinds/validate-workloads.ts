/**
 * Pod templates and the fields around them, Deployment, ReplicaSet, ReplicationController, StatefulSet and
 * ControllerRevision (pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go).
 */

import {
  forbiddenField,
  immutable,
  invalidValue,
  NOT_NEGATIVE,
  nonNegative,
  notDecremented,
  notSupported,
  required,
  sameJson,
} from '../kubernetes/causes.ts';
import { type LabelSelectorSpec, selectorFromSpec, validateSelector } from '../kubernetes/selectors.ts';
import type { Cause } from '../kubernetes/status.ts';
import {
  labelName,
  subdomainErrors,
  subdomainName,
  validateAnnotations,
  validateLabels,
  validateObjectMetadata,
} from '../kubernetes/validate-metadata.ts';
import { validatePodAnnotations, validatePodSpec } from './pods/validate.ts';
import type {
  IntOrString,
  KubeControllerRevision,
  KubeDeployment,
  KubePodTemplate,
  KubeReplicaSet,
  KubeReplicationController,
  KubeStatefulSet,
  PodTemplateSpec,
  ReplicaStatus,
  StatefulSetSpec,
} from './types.ts';

/** The labels, annotations and spec of a template. `field`: its path, such as `spec.template`. */
export function validateTemplate(template: PodTemplateSpec = {}, field: string): Cause[] {
  const { metadata = {}, spec = {} } = template;
  const causes = [
    ...validateLabels(metadata.labels, `${field}.labels`),
    ...validateAnnotations(metadata.annotations, `${field}.annotations`),
    ...validatePodAnnotations(metadata.annotations, spec, `${field}.annotations`),
    ...validatePodSpec(spec).map((cause) => ({ ...cause, field: `${field}.${cause.field ?? 'spec'}` })),
  ];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    causes.push(
      forbiddenField(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
  return causes;
}

export interface SelectionRules {
  /** Lower case, for the message about an empty selector. Absent: an empty selector is valid. */
  readonly kind?: string;
  readonly isRequired: boolean;
  /** Message of the additional cause for a selector that cannot be evaluated. Absent: no such cause. */
  readonly malformedText?: string;
}

interface Selection {
  readonly selector?: LabelSelectorSpec;
  readonly template?: PodTemplateSpec;
}

/** The selector of the pods, and whether it matches the labels of the template. */
export function validateSelection({ selector, template }: Selection, rules: SelectionRules): Cause[] {
  const field = 'spec.selector';
  const causes = validateSelector(selector, field);
  const isMalformed = causes.length > 0;
  if (selector === undefined && rules.isRequired) causes.push(required(field));
  const isEmpty = (selector?.matchExpressions ?? []).length + Object.keys(selector?.matchLabels ?? {}).length === 0;
  if (selector !== undefined && isEmpty && rules.kind !== undefined) {
    causes.push(invalidValue(field, selector, `empty selector is invalid for ${rules.kind}`));
  }
  if (isMalformed) {
    if (rules.malformedText !== undefined) causes.push(invalidValue(field, selector, rules.malformedText));
    return causes;
  }
  const labels = template?.metadata?.labels ?? {};
  if (!selectorFromSpec(selector).matches(labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  return causes;
}

/** Pods of these kinds run until they are deleted. `kind`: for the message. */
export function validateRunsForever(template: PodTemplateSpec | undefined, kind: string): Cause[] {
  const { restartPolicy = '', activeDeadlineSeconds } = template?.spec ?? {};
  const causes: Cause[] = [];
  if (restartPolicy !== 'Always') {
    causes.push(notSupported('spec.template.spec.restartPolicy', restartPolicy, ['Always']));
  }
  if (activeDeadlineSeconds !== undefined) {
    const why = `activeDeadlineSeconds in ${kind} is not Supported`;
    causes.push(forbiddenField('spec.template.spec.activeDeadlineSeconds', why));
  }
  return causes;
}

const RULES = { namespaced: true, name: subdomainName };

/** Upstream uses the text of Deployments for ReplicaSets too. */
const REPLICA_SELECTION: SelectionRules = {
  kind: 'deployment',
  isRequired: true,
  malformedText: 'invalid label selector',
};
const STATEFUL_SELECTION: SelectionRules = { kind: 'statefulset', isRequired: true, malformedText: '' };

const STATUS_COUNTS = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'currentReplicas',
  'fullyLabeledReplicas',
  'collisionCount',
] as const;

/** The counts that are parts of others. Each is at most `status.replicas`. */
const SHARES = [
  'fullyLabeledReplicas',
  'updatedReplicas',
  'readyReplicas',
  'currentReplicas',
  'availableReplicas',
] as const;

/** `readyText`: how the kind calls readyReplicas in its message. */
function validateCounts(status: ReplicaStatus = {}, old: ReplicaStatus = {}, readyText = 'readyReplicas'): Cause[] {
  const causes = STATUS_COUNTS.flatMap((name) => nonNegative(`status.${name}`, status[name]));
  const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  for (const name of SHARES) {
    const count = status[name] ?? 0;
    if (count > replicas) {
      causes.push(invalidValue(`status.${name}`, count, 'cannot be greater than status.replicas'));
    }
  }
  if (availableReplicas > readyReplicas) {
    const why = `cannot be greater than ${readyText}`;
    causes.push(invalidValue('status.availableReplicas', availableReplicas, why));
  }
  return [...causes, ...notDecremented('status.collisionCount', status.collisionCount, old.collisionCount)];
}

function validateStrategy({ type = '', rollingUpdate }: NonNullable<NonNullable<KubeDeployment['spec']>['strategy']>) {
  const field = 'spec.strategy';
  if (type === 'Recreate') {
    const why = "may not be specified when strategy `type` is 'Recreate'";
    return rollingUpdate === undefined ? [] : [forbiddenField(`${field}.rollingUpdate`, why)];
  }
  if (type !== 'RollingUpdate') return [notSupported(field, { type, rollingUpdate }, ['Recreate', 'RollingUpdate'])];
  const { maxUnavailable, maxSurge } = rollingUpdate ?? {};
  const causes = [
    ...validateShare(`${field}.rollingUpdate.maxUnavailable`, maxUnavailable),
    ...validateShare(`${field}.rollingUpdate.maxSurge`, maxSurge, 'unlimited'),
  ];
  if (shareValue(maxUnavailable) === 0 && shareValue(maxSurge) === 0) {
    const why = 'may not be 0 when `maxSurge` is 0';
    causes.push(invalidValue(`${field}.rollingUpdate.maxUnavailable`, maxUnavailable, why));
  }
  return causes;
}

export function validateDeployment(
  deployment: KubeDeployment,
  old: KubeDeployment | undefined,
  subresource: string,
): Cause[] {
  const metadata = validateObjectMetadata(deployment, old, RULES);
  if (subresource === 'status') return [...metadata, ...validateCounts(deployment.status, old?.status)];
  const spec = deployment.spec ?? {};
  const { minReadySeconds = 0, progressDeadlineSeconds: deadline } = spec;
  const causes = [
    ...metadata,
    ...nonNegative('spec.replicas', spec.replicas),
    ...validateSelection(spec, REPLICA_SELECTION),
    ...validateTemplate(spec.template, 'spec.template'),
    ...validateRunsForever(spec.template, 'ReplicaSet'),
    ...validateStrategy(spec.strategy ?? {}),
    ...nonNegative('spec.minReadySeconds', minReadySeconds),
    ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...nonNegative('spec.progressDeadlineSeconds', deadline),
  ];
  if (deadline !== undefined && deadline <= minReadySeconds) {
    causes.push(invalidValue('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'));
  }
  if (old !== undefined) causes.push(...immutable('spec.selector', spec.selector, old.spec?.selector));
  return causes;
}

export function validateReplicaSet(set: KubeReplicaSet, old: KubeReplicaSet | undefined, subresource: string): Cause[] {
  const metadata = validateObjectMetadata(set, old, RULES);
  if (subresource === 'status') return [...metadata, ...validateCounts(set.status, old?.status)];
  const spec = set.spec ?? {};
  return [
    ...metadata,
    ...nonNegative('spec.replicas', spec.replicas),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...validateSelection(spec, REPLICA_SELECTION),
    ...validateTemplate(spec.template, 'spec.template'),
    ...validateRunsForever(spec.template, 'ReplicaSet'),
    ...(old === undefined ? [] : immutable('spec.selector', spec.selector, old.spec?.selector)),
  ];
}

export function validateReplicationController(
  controller: KubeReplicationController,
  old: KubeReplicationController | undefined,
  subresource: string,
): Cause[] {
  const metadata = validateObjectMetadata(controller, old, RULES);
  if (subresource === 'status') return [...metadata, ...validateCounts(controller.status, old?.status)];
  const { replicas, minReadySeconds, selector = {}, template } = controller.spec ?? {};
  const causes = [
    ...metadata,
    ...nonNegative('spec.minReadySeconds', minReadySeconds),
    ...nonNegative('spec.replicas', replicas),
  ];
  if (Object.keys(selector).length === 0) causes.push(required('spec.selector'));
  if (template === undefined) return [...causes, required('spec.template')];
  const labels = template.metadata?.labels ?? {};
  if (!Object.entries(selector).every(([key, value]) => labels[key] === value)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  return [
    ...causes,
    ...validateTemplate(template, 'spec.template'),
    ...validateRunsForever(template, 'ReplicationController'),
  ];
}

const CHANGEABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const;
const STATEFUL_SET_FIXED =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const RETENTION_POLICIES = ['Retain', 'Delete'];

function validateStatefulStrategy(strategy: NonNullable<StatefulSetSpec['updateStrategy']>): Cause[] {
  const field = 'spec.updateStrategy';
  const { type, rollingUpdate } = strategy;
  if (type === 'OnDelete') {
    const why = `only allowed for updateStrategy 'RollingUpdate'`;
    return rollingUpdate === undefined ? [] : [invalidValue(`${field}.rollingUpdate`, rollingUpdate, why)];
  }
  if (type !== 'RollingUpdate') return [invalidValue(field, strategy, `must be 'RollingUpdate' or 'OnDelete'`)];
  const { partition, maxUnavailable } = rollingUpdate ?? {};
  const path = `${field}.rollingUpdate.maxUnavailable`;
  const causes = [
    ...nonNegative(`${field}.rollingUpdate.partition`, partition),
    ...validateShare(path, maxUnavailable),
  ];
  if (maxUnavailable !== undefined && shareValue(maxUnavailable) === 0) {
    causes.push(invalidValue(path, maxUnavailable, 'cannot be 0'));
  }
  return causes;
}

function validateStatefulSpec(spec: StatefulSetSpec): Cause[] {
  const { podManagementPolicy: management = '', updateStrategy: strategy = {} } = spec;
  const causes: Cause[] = [];
  if (management === '') causes.push(required('spec.podManagementPolicy'));
  else if (management !== 'OrderedReady' && management !== 'Parallel') {
    const why = `must be 'OrderedReady' or 'Parallel'`;
    causes.push(invalidValue('spec.podManagementPolicy', management, why));
  }
  causes.push(...validateStatefulStrategy(strategy));
  if (spec.serviceName !== undefined && spec.serviceName !== '') {
    for (const error of subdomainErrors(spec.serviceName)) {
      causes.push(invalidValue('spec.serviceName', spec.serviceName, error));
    }
  }
  for (const name of ['whenDeleted', 'whenScaled'] as const) {
    const policy = spec.persistentVolumeClaimRetentionPolicy?.[name];
    if (policy === undefined || RETENTION_POLICIES.includes(policy)) continue;
    causes.push(notSupported(`spec.persistentVolumeClaimRetentionPolicy.${name}`, policy, RETENTION_POLICIES));
  }
  return [
    ...causes,
    ...nonNegative('spec.replicas', spec.replicas),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...nonNegative('spec.ordinals.start', spec.ordinals?.start),
    ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...validateSelection(spec, STATEFUL_SELECTION),
    ...validateTemplate(withClaimVolumes(spec), 'spec.template'),
    ...validateRunsForever(spec.template, 'StatefulSet'),
  ];
}

/** Its containers may mount the claims of each pod: the controller adds these volumes. */
function withClaimVolumes({ template, volumeClaimTemplates = [] }: StatefulSetSpec): StatefulSetSpec['template'] {
  if (template === undefined || volumeClaimTemplates.length === 0) return template;
  const volumes = template.spec?.volumes ?? [];
  const named = new Set(volumes.map(({ name }) => name));
  const claimed = volumeClaimTemplates
    .map(({ metadata }) => metadata.name ?? '')
    .filter((name) => !named.has(name))
    .map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  return { ...template, spec: { ...template.spec, volumes: [...volumes, ...claimed] } };
}

const withoutChangeable = (spec: StatefulSetSpec = {}): Partial<StatefulSetSpec> =>
  Object.fromEntries(Object.entries(spec).filter(([key]) => !(CHANGEABLE as readonly string[]).includes(key)));

export function validateStatefulSet(
  set: KubeStatefulSet,
  old: KubeStatefulSet | undefined,
  subresource: string,
): Cause[] {
  // The names of its pods are labels.
  const metadata = validateObjectMetadata(set, old, { namespaced: true, name: labelName });
  if (subresource === 'status') {
    return [...metadata, ...validateCounts(set.status, old?.status, 'status.readyReplicas')];
  }
  const causes = [...metadata, ...validateStatefulSpec(set.spec ?? {})];
  if (old === undefined || sameJson(withoutChangeable(set.spec), withoutChangeable(old.spec))) return causes;
  return [...causes, forbiddenField('spec', STATEFUL_SET_FIXED)];
}

export function validateControllerRevision(
  revision: KubeControllerRevision,
  old: KubeControllerRevision | undefined,
): Cause[] {
  const causes = validateObjectMetadata(revision, old, RULES);
  if (revision.data === undefined) causes.push(required('data', 'data is mandatory'));
  causes.push(...nonNegative('revision', revision.revision));
  return old === undefined ? causes : [...causes, ...immutable('data', revision.data, old.data)];
}

export const validatePodTemplate = (template: KubePodTemplate, old: KubePodTemplate | undefined): Cause[] => [
  ...validateObjectMetadata(template, old, RULES),
  ...validateTemplate(template.template, 'template'),
];

const PERCENT_TEXT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** A count of pods, or a share of them such as 25%. A share is at most 100%, unless it is `unlimited`. */
export function validateShare(field: string, value: IntOrString | undefined, share?: 'unlimited'): Cause[] {
  if (value === undefined) return [];
  if (typeof value === 'number') return value < 0 ? [invalidValue(field, value, NOT_NEGATIVE)] : [];
  const match = /^(\d+)%$/.exec(value);
  if (match === null) return [invalidValue(field, value, PERCENT_TEXT)];
  return share !== 'unlimited' && Number(match[1]) > 100
    ? [invalidValue(field, value, 'must not be greater than 100%')]
    : [];
}

/**
 * The number of a count or share: 25 for 25 and for 25%. Upstream counts a malformed text, and an absent value, as 0.
 */
export const shareValue = (value: IntOrString = 0): number =>
  typeof value === 'number' ? value : Number(/^(\d+)%?$/.exec(value)?.[1] ?? 0);
