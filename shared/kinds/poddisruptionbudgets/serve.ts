import { ageSince } from '../../kubernetes/age.ts';
import { sameJson } from '../../kubernetes/causes.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import type { LabelSelectorSpec } from '../../kubernetes/selectors.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesSpecAndStatus } from '../served-kind.ts';
import type { IntOrString, KubeObject, KubePodDisruptionBudget } from '../types.ts';
import { DISRUPTION_BUDGETS, POLICY_GROUP } from './resource.ts';
import { validateDisruptionBudget } from './validate.ts';

const NOT_APPLICABLE = 'N/A';

const EMPTY_STATUS = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 };

const shareCell = (share: IntOrString | undefined): string => String(share ?? NOT_APPLICABLE);

export const poddisruptionbudgets: ResourceDescriptor = {
  ...DISRUPTION_BUDGETS,
  singular: 'poddisruptionbudget',
  listKind: 'PodDisruptionBudgetList',
  shortNames: ['pdb'],
  categories: [],
  subresources: [{ name: 'status', verbs: ['get', 'patch', 'update'] }],
  columns: [
    nameColumn,
    textColumn('Min Available', 'Pods that must stay, as a count or a share.'),
    textColumn('Max Unavailable', 'Pods that may be missing, as a count or a share.'),
    {
      name: 'Allowed Disruptions',
      type: 'integer',
      format: '',
      description: 'Pods that may be evicted now.',
      priority: 0,
    },
    ageColumn,
  ],
  row: (object: KubePodDisruptionBudget, nowMs) => [
    object.metadata.name ?? '',
    shareCell(object.spec?.minAvailable),
    shareCell(object.spec?.maxUnavailable),
    object.status?.disruptionsAllowed ?? 0,
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  unconditionalUpdate: false,
  createOnUpdate: false,
  ...preparesSpecAndStatus(DISRUPTION_BUDGETS, {
    storedSpec: (spec = {}) => withoutNulls(spec),
    storedStatus: (status = {}) => ({
      ...EMPTY_STATUS,
      ...withoutEmpty(withoutNulls(status), 'conditions', 'disruptedPods'),
    }),
  }),
  validate: (object, { old, subresource }) => validateDisruptionBudget(object, old, subresource),
};

const MARK = 'pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match';

/**
 * An empty selector selects all pods in v1 and none in v1beta1. Each version shows the other's empty selector as a
 * requirement on a label that no pod has. Source: pkg/apis/policy/v1beta1/conversion.go.
 */
const NO_PODS = { matchExpressions: [{ key: MARK, operator: 'Exists' }] };
const ALL_PODS = { matchExpressions: [{ key: MARK, operator: 'DoesNotExist' }] };

function withSelector(
  version: string,
  budget: KubePodDisruptionBudget,
  mark: LabelSelectorSpec,
  empty: LabelSelectorSpec,
): KubeObject {
  const { selector } = budget.spec ?? {};
  const apiVersion = `${POLICY_GROUP}/${version}`;
  if (selector === undefined) return { ...budget, apiVersion };
  const isEmpty = sameJson(selector, {});
  const converted = isEmpty ? empty : sameJson(selector, mark) ? {} : selector;
  return { ...budget, apiVersion, spec: { ...budget.spec, selector: converted } };
}

/** What a scheduler of Kubernetes 1.20 lists and watches. */
export const poddisruptionbudgetsV1beta1: ResourceDescriptor = {
  ...poddisruptionbudgets,
  version: 'v1beta1',
  servedFrom: {
    group: POLICY_GROUP,
    resource: poddisruptionbudgets.resource,
    toServed: (stored) => withSelector('v1beta1', stored, NO_PODS, ALL_PODS),
    toStored: (served) => withSelector('v1', served, ALL_PODS, NO_PODS),
  },
};
