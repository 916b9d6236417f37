/** Resources that can only be created and are never stored: questions about the asker. */
export interface SelfReview {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly ['create'];
}

const selfReview = (group: string, resource: string, kind: string): SelfReview => ({
  group,
  version: 'v1',
  resource,
  singular: kind.toLowerCase(),
  kind,
  namespaced: false,
  verbs: ['create'],
});

export const selfReviews: readonly SelfReview[] = [
  selfReview('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  selfReview('authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'),
  selfReview('authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview'),
];

export const findSelfReview = (group: string, version: string, resource: string): SelfReview | undefined =>
  selfReviews.find((each) => each.group === group && each.version === version && each.resource === resource);
