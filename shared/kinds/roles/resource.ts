import { storedResource } from '../stored-resource.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

export const ROLES = storedResource({
  group: RBAC_GROUP,
  resource: 'roles',
  kind: 'Role',
  scope: 'namespaced',
});

export const CLUSTER_ROLES = storedResource({
  group: RBAC_GROUP,
  resource: 'clusterroles',
  kind: 'ClusterRole',
  scope: 'cluster',
});

export const ROLE_BINDINGS = storedResource({
  group: RBAC_GROUP,
  resource: 'rolebindings',
  kind: 'RoleBinding',
  scope: 'namespaced',
});

export const CLUSTER_ROLE_BINDINGS = storedResource({
  group: RBAC_GROUP,
  resource: 'clusterrolebindings',
  kind: 'ClusterRoleBinding',
  scope: 'cluster',
});
