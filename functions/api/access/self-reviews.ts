/** Reviews of the caller, and of other users. */
import type { CreatedOnly } from '../verbs/read-created-only.ts';

const review = (group: string, resource: string, kind: string, namespaced = false): CreatedOnly => ({
  group,
  version: 'v1',
  resource,
  singular: kind.toLowerCase(),
  kind,
  namespaced,
  verbs: ['create'],
});

export const selfReviews: readonly CreatedOnly[] = [
  review('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  review('authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'),
  review('authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview'),
];

/** Reviews of other users. Only some users may ask them. */
export const accessReviews: readonly CreatedOnly[] = [
  review('authentication.k8s.io', 'tokenreviews', 'TokenReview'),
  review('authorization.k8s.io', 'localsubjectaccessreviews', 'LocalSubjectAccessReview', true),
  review('authorization.k8s.io', 'subjectaccessreviews', 'SubjectAccessReview'),
];

/** All of them. */
export const reviews: readonly CreatedOnly[] = [...selfReviews, ...accessReviews];

export const findSelfReview = (group: string, version: string, resource: string): CreatedOnly | undefined =>
  selfReviews.find((each) => each.group === group && each.version === version && each.resource === resource);
