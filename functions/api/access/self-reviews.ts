/** Resources that can only be created and are never stored: reviews of the caller, and of other users. */
export interface Review {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly ['create'];
}

const review = (group: string, resource: string, kind: string, namespaced = false): Review => ({
  group,
  version: 'v1',
  resource,
  singular: kind.toLowerCase(),
  kind,
  namespaced,
  verbs: ['create'],
});

export const selfReviews: readonly Review[] = [
  review('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  review('authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'),
  review('authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview'),
];

/** Reviews of other users. Only some users may ask them. */
export const accessReviews: readonly Review[] = [
  review('authentication.k8s.io', 'tokenreviews', 'TokenReview'),
  review('authorization.k8s.io', 'localsubjectaccessreviews', 'LocalSubjectAccessReview', true),
  review('authorization.k8s.io', 'subjectaccessreviews', 'SubjectAccessReview'),
];

/** All of them, for discovery and OpenAPI. */
export const reviews: readonly Review[] = [...selfReviews, ...accessReviews];

export const findSelfReview = (group: string, version: string, resource: string): Review | undefined =>
  selfReviews.find((each) => each.group === group && each.version === version && each.resource === resource);
