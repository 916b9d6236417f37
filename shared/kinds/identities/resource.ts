import { storedResource } from '../stored-resource.ts';

/** Group of the kinds that Kubernetes does not have. */
export const IDENTITY_GROUP = 'nodekeeper.dev';

/** Clients create, read and delete these kinds, but never update them. They have no watch. */
const ENROLMENT = {
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  scope: 'cluster',
  verbs: ['create', 'delete', 'get', 'list'],
} as const;

export const NODE_IDENTITIES = storedResource({
  ...ENROLMENT,
  resource: 'nodeidentities',
  kind: 'NodeIdentity',
});

export const BOOTSTRAP_TOKENS = storedResource({
  ...ENROLMENT,
  resource: 'bootstraptokens',
  kind: 'BootstrapToken',
});
