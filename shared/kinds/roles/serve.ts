/** Roles and bindings. access/authorizer.ts evaluates them; admission/escalation.ts limits who may write them. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import { ageOf, createdAtColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import type { StoredResource } from '../stored-resource.ts';
import type { KubeRole, KubeRoleBinding, Subject } from '../types.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, RBAC_GROUP, ROLE_BINDINGS, ROLES } from './resource.ts';
import { validateRole, validateRoleBinding } from './validate.ts';

function roleKind(stored: StoredResource): ResourceDescriptor {
  const { namespaced } = stored;
  return servedKind(stored, {
    createOnUpdate: true,
    columns: [nameColumn, createdAtColumn],
    row: (object) => [nameOf(object), object.metadata.creationTimestamp ?? ''],
    prepare: preparesWhole(stored, (object: KubeRole) => ({ ...object, rules: object.rules ?? [] })),
    validate: (object, old) => validateRole(object, old, namespaced),
  });
}

/** Users and groups are of the RBAC group, service accounts of the core group. Source: pkg/apis/rbac/v1/defaults.go. */
const storedSubject = (subject: Subject): Subject =>
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

const subjectsCell = (subjects: readonly Subject[] = [], kind: string): string =>
  subjects
    .filter((subject) => subject.kind === kind)
    .map(({ name = '', namespace }) => (namespace === undefined ? name : `${namespace}/${name}`))
    .join(', ');

function bindingKind(stored: StoredResource): ResourceDescriptor {
  const { namespaced } = stored;
  return servedKind(stored, {
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
    prepare: preparesWhole(stored, storedBinding),
    validate: (object, old) => validateRoleBinding(object, old, namespaced),
  });
}

export const roles: ResourceDescriptor = roleKind(ROLES);
export const clusterroles: ResourceDescriptor = roleKind(CLUSTER_ROLES);
export const rolebindings: ResourceDescriptor = bindingKind(ROLE_BINDINGS);
export const clusterrolebindings: ResourceDescriptor = bindingKind(CLUSTER_ROLE_BINDINGS);
