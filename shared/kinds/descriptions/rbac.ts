import type { Descriptions } from './descriptions.ts';

export const rbac: Descriptions = {
  'rbac/v1.AggregationRule': {
    '': 'ClusterRoles that a ClusterRole is composed of.',
    clusterRoleSelectors: 'Selectors of these ClusterRoles.',
  },
  'rbac/v1.ClusterRole': {
    '': 'ClusterRole is a cluster level, logical grouping of PolicyRules that can be referenced as a unit by a binding.',
    rules: 'The rules.',
    aggregationRule: 'ClusterRoles that it is composed of; its own rules then do not apply.',
  },
  'rbac/v1.ClusterRoleBinding': {
    '': 'ClusterRoleBinding references a ClusterRole, but does not contain it. It grants the role in the whole cluster.',
    subjects: 'Users, groups and service accounts that have the role.',
    roleRef: 'The role. Cannot change.',
  },
  'rbac/v1.PolicyRule': {
    '': 'Actions that are allowed.',
    verbs: 'Verbs; * is all.',
    apiGroups: 'API groups; * is all.',
    resources: 'Resources; * is all.',
    resourceNames: 'Names of objects; all if empty.',
    nonResourceURLs: 'Paths that are not resources, for ClusterRoles.',
  },
  'rbac/v1.Role': {
    '': 'Role is a namespaced, logical grouping of PolicyRules that can be referenced as a unit by a RoleBinding.',
    rules: 'The rules.',
  },
  'rbac/v1.RoleBinding': {
    '': 'RoleBinding references a role, but does not contain it. It grants the role in its namespace.',
    subjects: 'Users, groups and service accounts that have the role.',
    roleRef: 'The role. Cannot change.',
  },
  'rbac/v1.RoleRef': {
    '': 'Names a role.',
    apiGroup: 'API group of the role.',
    kind: 'Role or ClusterRole.',
    name: 'Name of the role.',
  },
  'rbac/v1.Subject': {
    '': 'A user, a group or a service account.',
    kind: 'User, Group or ServiceAccount.',
    apiGroup: 'API group of the subject.',
    name: 'Name of the subject.',
    namespace: 'Namespace of a service account.',
  },
};
