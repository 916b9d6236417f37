import { ageSince } from '../../kube/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { withoutEmpty, withoutNulls } from '../../kube/normal-form.ts';
import type { IntOrString, KubePodDisruptionBudget } from '../../kube/types.ts';
import { validateDisruptionBudget } from '../../kube/validation/disruption-budget.ts';
import { preparesSpecAndStatus } from './spec-and-status.ts';

export const POLICY_GROUP = 'policy';
const NOT_APPLICABLE = 'N/A';

const EMPTY_STATUS = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 };

const shareCell = (share: IntOrString | undefined): string => String(share ?? NOT_APPLICABLE);

export const poddisruptionbudgets: ResourceDescriptor = {
  group: POLICY_GROUP,
  version: 'v1',
  resource: 'poddisruptionbudgets',
  singular: 'poddisruptionbudget',
  kind: 'PodDisruptionBudget',
  listKind: 'PodDisruptionBudgetList',
  shortNames: ['pdb'],
  categories: [],
  namespaced: true,
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [{ name: 'status', verbs: ['get', 'patch', 'update'] }],
  shards: 1,
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
  selectableFields: {
    'metadata.name': (object) => object.metadata.name ?? '',
    'metadata.namespace': (object) => object.metadata.namespace ?? '',
  },
  unconditionalUpdate: false,
  createOnUpdate: false,
  ...preparesSpecAndStatus({
    group: POLICY_GROUP,
    version: 'v1',
    kind: 'PodDisruptionBudget',
    storedSpec: (spec = {}) => withoutNulls(spec),
    storedStatus: (status = {}) => ({
      ...EMPTY_STATUS,
      ...withoutEmpty(withoutNulls(status), 'conditions', 'disruptedPods'),
    }),
  }),
  validate: (object, { old, subresource }) => validateDisruptionBudget(object, old, subresource),
};
