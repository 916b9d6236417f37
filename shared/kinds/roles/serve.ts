/** Roles and bindings. access/authorizer.ts evaluates them; admission/escalation.ts limits who may write them. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import type { KubeRole, KubeRoleBinding, RoleSubject } from '../application-types.ts';
import { ageOf, createdAtColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { type KindNames, preparesWhole, storedKind } from '../stored-kind.ts';
import { RBAC_GROUP, validateRole, validateRoleBinding } from './validate.ts';

function roleKind(names: KindNames): ResourceDescriptor {
  const namespaced = names.scope === 'namespaced';
  return storedKind(names, {
    createOnUpdate: true,
    columns: [nameColumn, createdAtColumn],
    row: (object) => [nameOf(object), object.metadata.creationTimestamp ?? ''],
    prepare: preparesWhole(names, (object: KubeRole) => ({ ...object, rules: object.rules ?? [] })),
    validate: (object, old) => validateRole(object, old, namespaced),
  });
}

/** Users and groups are of the RBAC group, service accounts of the core group. Source: pkg/apis/rbac/v1/defaults.go. */
const storedSubject = (subject: RoleSubject): RoleSubject =>
  subject.kind === 'ServiceAccount' ? subject : { ...subject, apiGroup: subject.apiGroup || RBAC_GROUP };

const storedBinding = (binding: KubeRoleBinding): KubeRoleBinding =>
  withoutEmpty(
    {
      ...binding,
      roleRef: { ...binding.roleRef, apiGroup: binding.roleRef?.apiGroup || RBAC_GROUP },
      subjects: (binding.subjects ?? []).map(storedSubject),
    },
    'subjects',
  );

const subjectsCell = (subjects: readonly RoleSubject[] = [], kind: string): string =>
  subjects
    .filter((subject) => subject.kind === kind)
    .map(({ name = '', namespace }) => (namespace === undefined ? name : `${namespace}/${name}`))
    .join(', ');

function bindingKind(names: KindNames): ResourceDescriptor {
  const namespaced = names.scope === 'namespaced';
  return storedKind(names, {
    createOnUpdate: true,
    columns: [
      nameColumn,
      textColumn('Role', 'Role that is granted.'),
      ageColumn,
      textColumn('Users', 'Users that have the role.', 1),
      textColumn('Groups', 'Groups that have the role.', 1),
      textColumn('ServiceAccounts', 'Service accounts that have the role.', 1),
    ],
    row: (object: KubeRoleBinding, nowMs) => [
      nameOf(object),
      `${object.roleRef?.kind ?? ''}/${object.roleRef?.name ?? ''}`,
      ageOf(object, nowMs),
      subjectsCell(object.subjects, 'User'),
      subjectsCell(object.subjects, 'Group'),
      subjectsCell(object.subjects, 'ServiceAccount'),
    ],
    prepare: preparesWhole(names, storedBinding),
    validate: (object, old) => validateRoleBinding(object, old, namespaced),
  });
}

const names = (resource: string, kind: string, scope: KindNames['scope']): KindNames => ({
  group: RBAC_GROUP,
  resource,
  kind,
  scope,
});

export const roles: ResourceDescriptor = roleKind(names('roles', 'Role', 'namespaced'));
export const clusterroles: ResourceDescriptor = roleKind(names('clusterroles', 'ClusterRole', 'cluster'));
export const rolebindings: ResourceDescriptor = bindingKind(names('rolebindings', 'RoleBinding', 'namespaced'));
export const clusterrolebindings: ResourceDescriptor = bindingKind(
  names('clusterrolebindings', 'ClusterRoleBinding', 'cluster'),
);
