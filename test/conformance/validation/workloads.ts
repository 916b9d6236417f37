/** Constraints of the kinds that own pods (pkg/apis/apps/validation, pkg/apis/batch/validation). */
import {
  at,
  type Constraint,
  forbidden,
  IMMUTABLE,
  invalid,
  leftOut,
  NOT_NEGATIVE,
  nonNegative,
  on,
  onStatus,
  onUpdate,
  required,
  unsupported,
} from './constraint.ts';

export const templateLabels = { app: 'a' };
export const template = {
  metadata: { labels: templateLabels },
  spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] },
};
const expression = (operator: string, values?: string[], key = 'app') => ({
  matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }],
});

/** metav1.LabelSelector (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation). */
export const labelSelector = (field: string): Constraint[] => [
  on(
    field,
    'an operator that is known',
    { [field]: expression('Like', ['a']) },
    invalid('not a valid selector operator', `${field}.matchExpressions[0].operator`),
  ),
  on(
    field,
    'In and NotIn have values',
    { [field]: expression('In', []) },
    required("must be specified when `operator` is 'In' or 'NotIn'", `${field}.matchExpressions[0].values`),
  ),
  on(
    field,
    'Exists and DoesNotExist have no values',
    { [field]: expression('Exists', ['a']) },
    forbidden(
      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      `${field}.matchExpressions[0].values`,
    ),
  ),
  on(
    field,
    'keys are qualified names',
    { [field]: expression('Exists', undefined, 'a b') },
    invalid(undefined, `${field}.matchExpressions[0].key`),
  ),
  on(
    field,
    'values have the form of label values',
    { [field]: expression('In', ['a b']) },
    invalid(undefined, `${field}.matchExpressions[0].values[0]`),
  ),
  on(
    field,
    'matchLabels have the form of labels',
    { [field]: { matchLabels: { 'a b': 'x' } } },
    invalid(undefined, `${field}.matchLabels`),
  ),
];

interface Owner {
  /** For the message about an empty selector. */
  readonly emptyKind?: string;
  readonly isRequired: boolean;
  readonly malformedText?: string;
}

const LABELS_TEXT = '`selector` does not match template `labels`';

const selection = ({ emptyKind, isRequired, malformedText }: Owner): Constraint[] => [
  ...(isRequired ? [on('spec.selector', 'set', { 'spec.selector': undefined }, required())] : []),
  on(
    'spec.selector',
    'one that is absent matches no template',
    { 'spec.selector': undefined },
    invalid(LABELS_TEXT, 'spec.template.metadata.labels'),
  ),
  ...(emptyKind === undefined
    ? []
    : [at('spec.selector', 'not empty', {}, invalid(`empty selector is invalid for ${emptyKind}`))]),
  ...(malformedText === undefined
    ? []
    : [at('spec.selector', 'can be evaluated', expression('Like'), invalid(malformedText))]),
  ...labelSelector('spec.selector'),
  at('spec.template.metadata.labels', 'match the selector', { app: 'b' }, invalid(LABELS_TEXT)),
];

const runsForever = (kind: string): Constraint[] => [
  at('spec.template.spec.restartPolicy', 'Always', 'Never', unsupported('supported values: "Always"')),
  at(
    'spec.template.spec.activeDeadlineSeconds',
    'not set',
    5,
    forbidden(`activeDeadlineSeconds in ${kind} is not Supported`),
  ),
];

export const share = (field: string, { isBounded = true } = {}): Constraint[] => [
  at(field, 'at least 0', -1, invalid(NOT_NEGATIVE)),
  at(field, 'a count or a percentage', 'half', invalid()),
  ...(isBounded ? [at(field, 'at most 100%', '101%', invalid('must not be greater than 100%'))] : []),
];

const counts = (...names: readonly string[]): Constraint[] =>
  names.map((name) => onStatus(`status.${name}`, 'at least 0', { [`status.${name}`]: -1 }, invalid(NOT_NEGATIVE)));

const collisions: Constraint[] = [
  onStatus(
    'status.collisionCount',
    'never decremented',
    { 'status.collisionCount': 1 },
    invalid('cannot be decremented'),
    {
      'status.collisionCount': 2,
    },
  ),
];

const shares = (readyText: string, ...names: readonly string[]): Constraint[] => [
  ...names.map((name) =>
    onStatus(
      `status.${name}`,
      'at most status.replicas',
      { 'status.replicas': 1, [`status.${name}`]: 2 },
      invalid('cannot be greater than status.replicas'),
    ),
  ),
  onStatus(
    'status.availableReplicas',
    'at most readyReplicas',
    { 'status.replicas': 3, 'status.readyReplicas': 1, 'status.availableReplicas': 2 },
    invalid(`cannot be greater than ${readyText}`),
  ),
];

export const deployments: Constraint[] = [
  ...nonNegative('spec.replicas', 'spec.minReadySeconds', 'spec.revisionHistoryLimit', 'spec.progressDeadlineSeconds'),
  ...selection({ emptyKind: 'deployment', isRequired: true, malformedText: 'invalid label selector' }),
  ...runsForever('ReplicaSet'),
  on(
    'spec.strategy.type',
    'Recreate or RollingUpdate',
    { 'spec.strategy.type': 'Other' },
    unsupported('supported values: "Recreate", "RollingUpdate"', 'spec.strategy'),
  ),
  on(
    'spec.strategy.rollingUpdate',
    'not with Recreate',
    { 'spec.strategy': { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    forbidden("may not be specified when strategy `type` is 'Recreate'"),
  ),
  ...share('spec.strategy.rollingUpdate.maxUnavailable'),
  ...share('spec.strategy.rollingUpdate.maxSurge', { isBounded: false }),
  on(
    'spec.strategy.rollingUpdate.maxUnavailable',
    'not 0 together with maxSurge',
    { 'spec.strategy.rollingUpdate': { maxUnavailable: 0, maxSurge: '0%' } },
    invalid('may not be 0 when `maxSurge` is 0'),
  ),
  on(
    'spec.progressDeadlineSeconds',
    'greater than minReadySeconds',
    { 'spec.progressDeadlineSeconds': 9, 'spec.minReadySeconds': 9 },
    invalid('must be greater than minReadySeconds'),
  ),
  onUpdate('spec.selector', 'immutable', { 'spec.selector': expression('Exists') }, invalid(IMMUTABLE)),
  ...counts(
    'observedGeneration',
    'replicas',
    'updatedReplicas',
    'readyReplicas',
    'availableReplicas',
    'unavailableReplicas',
    'collisionCount',
  ),
  ...shares('readyReplicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'),
  ...collisions,
];

export const replicaSets: Constraint[] = [
  ...nonNegative('spec.replicas', 'spec.minReadySeconds'),
  ...selection({ emptyKind: 'deployment', isRequired: true, malformedText: 'invalid label selector' }),
  ...runsForever('ReplicaSet'),
  onUpdate('spec.selector', 'immutable', { 'spec.selector': expression('Exists') }, invalid(IMMUTABLE)),
  ...counts('replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'),
  ...shares('readyReplicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'),
];

export const replicationControllers: Constraint[] = [
  ...nonNegative('spec.replicas', 'spec.minReadySeconds'),
  on('spec.template', 'set', { 'spec.template': undefined }, required()),
  on('spec.selector', 'not empty', { 'spec.selector': {}, 'spec.template.metadata': {} }, required()),
  at('spec.template.metadata.labels', 'match the selector', { app: 'b' }, invalid(LABELS_TEXT)),
  ...runsForever('ReplicationController'),
  ...counts('replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'),
  ...shares('readyReplicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'),
];

const SPEC_TEXT =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

export const statefulSets: Constraint[] = [
  ...nonNegative('spec.replicas', 'spec.minReadySeconds', 'spec.ordinals.start', 'spec.revisionHistoryLimit'),
  ...selection({ emptyKind: 'statefulset', isRequired: true, malformedText: '' }),
  ...runsForever('StatefulSet'),
  at('spec.podManagementPolicy', 'OrderedReady or Parallel', 'Random', invalid("must be 'OrderedReady' or 'Parallel'")),
  at('spec.serviceName', 'a DNS subdomain', 'Not_Valid', invalid()),
  on(
    'spec.updateStrategy.type',
    'RollingUpdate or OnDelete',
    { 'spec.updateStrategy': { type: 'Other' } },
    invalid("must be 'RollingUpdate' or 'OnDelete'", 'spec.updateStrategy'),
  ),
  on(
    'spec.updateStrategy.rollingUpdate',
    'not with OnDelete',
    { 'spec.updateStrategy': { type: 'OnDelete', rollingUpdate: { partition: 1 } } },
    invalid("only allowed for updateStrategy 'RollingUpdate'"),
  ),
  ...nonNegative('spec.updateStrategy.rollingUpdate.partition'),
  ...share('spec.updateStrategy.rollingUpdate.maxUnavailable'),
  at('spec.updateStrategy.rollingUpdate.maxUnavailable', 'not 0', 0, invalid('cannot be 0')),
  ...['whenDeleted', 'whenScaled'].map((name) =>
    at(
      `spec.persistentVolumeClaimRetentionPolicy.${name}`,
      'Retain or Delete',
      'Keep',
      unsupported('supported values: "Retain", "Delete"'),
    ),
  ),
  onUpdate('spec', 'immutable but for seven fields', { 'spec.serviceName': 'other' }, forbidden(SPEC_TEXT)),
  ...counts(
    'replicas',
    'readyReplicas',
    'currentReplicas',
    'updatedReplicas',
    'availableReplicas',
    'observedGeneration',
    'collisionCount',
  ),
  ...shares('status.readyReplicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'),
  ...collisions,
];

export const daemonSets: Constraint[] = [
  ...nonNegative('spec.minReadySeconds', 'spec.revisionHistoryLimit'),
  ...selection({ emptyKind: 'daemonset', isRequired: false }),
  ...runsForever('DaemonSet'),
  on(
    'spec.updateStrategy.type',
    'RollingUpdate or OnDelete',
    { 'spec.updateStrategy': { type: 'Other' } },
    unsupported('supported values: "RollingUpdate", "OnDelete"', 'spec.updateStrategy'),
  ),
  ...share('spec.updateStrategy.rollingUpdate.maxUnavailable'),
  ...share('spec.updateStrategy.rollingUpdate.maxSurge'),
  on(
    'spec.updateStrategy.rollingUpdate.maxSurge',
    'not together with maxUnavailable',
    { 'spec.updateStrategy.rollingUpdate': { maxSurge: 1, maxUnavailable: 1 } },
    invalid('may not be set when maxUnavailable is non-zero'),
  ),
  on(
    'spec.updateStrategy.rollingUpdate.maxUnavailable',
    'not 0 together with maxSurge',
    { 'spec.updateStrategy.rollingUpdate': { maxSurge: 0, maxUnavailable: 0 } },
    required('cannot be 0 when maxSurge is 0'),
  ),
  onUpdate('spec.selector', 'immutable', { 'spec.selector': expression('Exists') }, invalid(IMMUTABLE)),
  ...counts(
    'currentNumberScheduled',
    'numberMisscheduled',
    'desiredNumberScheduled',
    'numberReady',
    'observedGeneration',
    'updatedNumberScheduled',
    'numberAvailable',
    'numberUnavailable',
    'collisionCount',
  ),
  ...collisions,
  leftOut(
    'spec.templateGeneration',
    'counts the changes of the template',
    'not a field of apps/v1: an annotation has it, and the server sets it',
  ),
];
