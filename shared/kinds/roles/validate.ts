/** Roles and their bindings (pkg/apis/rbac/validation/validation.go). */

import { invalidValue, notSupported, required, requiredAt, sameJson } from '../../kubernetes/causes.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  pathSegmentErrors,
  pathSegmentName,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { KubeClusterRole, KubeRole, KubeRoleBinding, PolicyRule, Subject } from '../types.ts';
import { RBAC_GROUP } from './resource.ts';

function validateRule(rule: PolicyRule, namespaced: boolean, field: string): Cause[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const causes: Cause[] = [];
  if (verbs.length === 0) causes.push(required(`${field}.verbs`, 'verbs must contain at least one value'));
  if (nonResourceURLs.length > 0) {
    if (namespaced) {
      const why = 'namespaced rules cannot apply to non-resource URLs';
      causes.push(invalidValue(`${field}.nonResourceURLs`, nonResourceURLs, why));
    }
    if (apiGroups.length > 0 || resources.length > 0 || resourceNames.length > 0) {
      const why = 'rules cannot apply to both regular resources and non-resource URLs';
      causes.push(invalidValue(`${field}.nonResourceURLs`, nonResourceURLs, why));
    }
    return causes;
  }
  if (apiGroups.length === 0) {
    causes.push(required(`${field}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if (resources.length === 0) {
    causes.push(required(`${field}.resources`, 'resource rules must supply at least one resource'));
  }
  return causes;
}

/** @param namespaced true for a Role, false for a ClusterRole */
export function validateRole(role: KubeRole, old: KubeRole | undefined, namespaced: boolean): Cause[] {
  return [
    ...validateObjectMetadata(role, old, { namespaced, name: pathSegmentName }),
    ...(role.rules ?? []).flatMap((rule, index) => validateRule(rule, namespaced, `rules[${index}]`)),
    ...(namespaced ? [] : validateAggregation(role)),
  ];
}

function validateAggregation({ aggregationRule }: KubeClusterRole): Cause[] {
  if (aggregationRule === undefined) return [];
  const field = 'aggregationRule.clusterRoleSelectors';
  const selectors = aggregationRule.clusterRoleSelectors ?? [];
  if (selectors.length === 0) {
    return [required(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')];
  }
  return selectors.flatMap((selector, index) => validateSelector(selector, `${field}[${index}]`));
}

function validateSubject(subject: Subject, namespaced: boolean, field: string): Cause[] {
  const { kind = '', name = '', apiGroup = '', namespace = '' } = subject;
  const causes: Cause[] = name === '' ? [required(`${field}.name`)] : [];
  switch (kind) {
    case 'ServiceAccount':
      for (const error of name === '' ? [] : subdomainName(name, false)) {
        causes.push(invalidValue(`${field}.name`, name, error));
      }
      if (apiGroup !== '') causes.push(notSupported(`${field}.apiGroup`, apiGroup, ['']));
      if (namespace === '' && !namespaced) causes.push(required(`${field}.namespace`));
      return causes;
    case 'User':
    case 'Group':
      if (name === '') causes.push(invalidValue(`${field}.name`, '', `${kind.toLowerCase()} name cannot be empty`));
      return apiGroup === RBAC_GROUP ? causes : [...causes, notSupported(`${field}.apiGroup`, apiGroup, [RBAC_GROUP])];
    default:
      return [...causes, notSupported(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group'])];
  }
}

/** @param namespaced true for a RoleBinding, false for a ClusterRoleBinding */
export function validateRoleBinding(
  binding: KubeRoleBinding,
  old: KubeRoleBinding | undefined,
  namespaced: boolean,
): Cause[] {
  const causes = validateObjectMetadata(binding, old, { namespaced, name: pathSegmentName });
  const { apiGroup = '', kind = '', name = '' } = binding.roleRef ?? {};
  if (apiGroup !== RBAC_GROUP) causes.push(notSupported('roleRef.apiGroup', apiGroup, [RBAC_GROUP]));
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  if (!kinds.includes(kind)) causes.push(notSupported('roleRef.kind', kind, kinds));
  causes.push(...requiredAt('roleRef.name', name, pathSegmentErrors));
  for (const [index, subject] of (binding.subjects ?? []).entries()) {
    causes.push(...validateSubject(subject, namespaced, `subjects[${index}]`));
  }
  if (old !== undefined && !sameJson(binding.roleRef, old.roleRef)) {
    causes.push(invalidValue('roleRef', binding.roleRef, 'cannot change roleRef'));
  }
  return causes;
}
