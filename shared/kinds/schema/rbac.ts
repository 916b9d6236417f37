import { labelSelector, metadata } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  embedded,
  kindStruct,
  list,
  optionalStruct,
  required,
  type StructSchema,
  struct,
  text,
  textList,
} from '../../kubernetes/schema/schema.ts';

const RBAC = 'io.k8s.api.rbac.v1';

const policyRule = struct(`${RBAC}.PolicyRule`, 'Actions that are allowed.', {
  verbs: required(textList('Verbs; * is all.')),
  apiGroups: textList('API groups; * is all.'),
  resources: textList('Resources; * is all.'),
  resourceNames: textList('Names of objects; all if empty.'),
  nonResourceURLs: textList('Paths that are not resources, for ClusterRoles.'),
});

export const role: StructSchema = kindStruct(
  `${RBAC}.Role`,
  { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'Role' },
  'Role is a namespaced, logical grouping of PolicyRules that can be referenced as a unit by a RoleBinding.',
  {
    metadata,
    rules: list(policyRule, 'The rules.'),
  },
);

const aggregationRule = struct(`${RBAC}.AggregationRule`, 'ClusterRoles that a ClusterRole is composed of.', {
  clusterRoleSelectors: list(labelSelector, 'Selectors of these ClusterRoles.'),
});

export const clusterRole: StructSchema = kindStruct(
  `${RBAC}.ClusterRole`,
  { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole' },
  'ClusterRole is a cluster level, logical grouping of PolicyRules that can be referenced as a unit by a binding.',
  {
    metadata,
    rules: list(policyRule, 'The rules.'),
    aggregationRule: optionalStruct(
      aggregationRule,
      'ClusterRoles that it is composed of; its own rules then do not apply.',
    ),
  },
);

const subject = atomicStruct(`${RBAC}.Subject`, 'A user, a group or a service account.', {
  kind: required(text('User, Group or ServiceAccount.')),
  apiGroup: text('API group of the subject.'),
  name: required(text('Name of the subject.')),
  namespace: text('Namespace of a service account.'),
});

const roleRef = atomicStruct(`${RBAC}.RoleRef`, 'Names a role.', {
  apiGroup: required(text('API group of the role.')),
  kind: required(text('Role or ClusterRole.')),
  name: required(text('Name of the role.')),
});

export const roleBinding: StructSchema = kindStruct(
  `${RBAC}.RoleBinding`,
  { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'RoleBinding' },
  'RoleBinding references a role, but does not contain it. It grants the role in its namespace.',
  {
    metadata,
    subjects: list(subject, 'Users, groups and service accounts that have the role.'),
    roleRef: required(embedded(roleRef, 'The role. Cannot change.')),
  },
);

export const clusterRoleBinding: StructSchema = kindStruct(
  `${RBAC}.ClusterRoleBinding`,
  { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRoleBinding' },
  'ClusterRoleBinding references a ClusterRole, but does not contain it. It grants the role in the whole cluster.',
  {
    metadata,
    subjects: list(subject, 'Users, groups and service accounts that have the role.'),
    roleRef: required(embedded(roleRef, 'The role. Cannot change.')),
  },
);
