import { storedResource } from '../stored-resource.ts';

export const POLICY_GROUP = 'policy';

export const DISRUPTION_BUDGETS = storedResource({
  group: POLICY_GROUP,
  resource: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  scope: 'namespaced',
  otherApiVersions: [`${POLICY_GROUP}/v1beta1`],
});
