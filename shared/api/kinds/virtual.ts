/** Resources that can only be created and are never stored: questions about the asker. */
export interface VirtualResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly ['create'];
}

const selfReview = (group: string, resource: string, kind: string): VirtualResource => ({
  group,
  version: 'v1',
  resource,
  singular: kind.toLowerCase(),
  kind,
  namespaced: false,
  verbs: ['create'],
});

export const virtualResources: readonly VirtualResource[] = [
  selfReview('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  selfReview('authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'),
  selfReview('authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview'),
];

export const findVirtual = (group: string, version: string, resource: string): VirtualResource | undefined =>
  virtualResources.find((each) => each.group === group && each.version === version && each.resource === resource);
