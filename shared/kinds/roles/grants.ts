/**
 * The rules that bindings grant to a user. Source: upstream pkg/registry/rbac/validation/rule.go, for the order of the
 * bindings and for the texts.
 */

import { serviceAccountUser } from '../../access/account-name.ts';
import { quote } from '../../kubernetes/status.ts';
import type { KubeRoleBinding, PolicyRule, Subject } from '../types.ts';
import { type RuleRequest, ruleAllows } from './policy-rule.ts';

export interface RbacUser {
  readonly username: string;
  readonly groups: readonly string[];
}

type RoleRef = NonNullable<KubeRoleBinding['roleRef']>;

/** The roles and bindings that apply in one namespace, or at cluster scope. */
export interface PolicyView {
  /** '' at cluster scope. */
  readonly namespace: string;
  readonly clusterRoleBindings: readonly KubeRoleBinding[];
  /** Those of the namespace. */
  readonly roleBindings: readonly KubeRoleBinding[];
  /** undefined: there is no such role. */
  rulesOf(kind: 'Role' | 'ClusterRole', name: string): readonly PolicyRule[] | undefined;
}

/** The rules of one binding, or the reason why there are none. */
export type Grant =
  | { readonly kind: 'rules'; readonly source: string; readonly rules: readonly PolicyRule[] }
  | { readonly kind: 'fault'; readonly message: string };

function appliesTo({ username, groups }: RbacUser, subject: Subject, bindingNamespace: string): boolean {
  const { kind, name = '', namespace } = subject;
  switch (kind) {
    case 'User':
      return name === username;
    case 'Group':
      return groups.includes(name);
    case 'ServiceAccount': {
      const place = namespace === undefined || namespace === '' ? bindingNamespace : namespace;
      return place !== '' && username === serviceAccountUser(place, name);
    }
    default:
      return false;
  }
}

function subjectText({ kind = '', name = '', namespace = '' }: Subject, bindingNamespace: string): string {
  if (kind !== 'ServiceAccount') return `${kind} ${quote(name)}`;
  return `${kind} ${quote(`${name}/${namespace === '' ? bindingNamespace : namespace}`)}`;
}

/** Upstream names the kind in the singular here. */
const missingRole = ({ kind = '', name = '' }: RoleRef): string =>
  `${kind.toLowerCase()}.rbac.authorization.k8s.io ${quote(name)} not found`;

/** What the bindings grant to a user, those of the cluster first. Later bindings are only read as far as needed. */
export function* grantsOf(user: RbacUser, view: PolicyView): Generator<Grant> {
  const inCluster = view.clusterRoleBindings.map((binding) => ({ binding, namespace: '' }));
  const inNamespace = view.roleBindings.map((binding) => ({ binding, namespace: view.namespace }));
  for (const { binding, namespace } of [...inCluster, ...inNamespace]) {
    const subject = (binding.subjects ?? []).find((each) => appliesTo(user, each, namespace));
    if (subject === undefined) continue;
    const roleRef = binding.roleRef ?? {};
    // A ClusterRoleBinding can only name a ClusterRole.
    const kind = roleRef.kind === 'Role' && namespace !== '' ? 'Role' : 'ClusterRole';
    const rules = view.rulesOf(kind, roleRef.name ?? '');
    if (rules === undefined) {
      yield { kind: 'fault', message: missingRole(roleRef) };
      continue;
    }
    const { name = '' } = binding.metadata;
    const place =
      namespace === '' ? `ClusterRoleBinding ${quote(name)}` : `RoleBinding ${quote(`${name}/${namespace}`)}`;
    const role = `${roleRef.kind ?? ''} ${quote(roleRef.name ?? '')}`;
    yield { kind: 'rules', source: `${place} of ${role} to ${subjectText(subject, namespace)}`, rules };
  }
}

export type RbacAnswer = { readonly allowed: boolean; readonly reason: string };

/** Several faults in one text, as upstream's aggregated errors. */
export function faultsText(faults: readonly string[]): string {
  const distinct = [...new Set(faults)];
  return distinct.length === 1 ? (distinct[0] ?? '') : `[${distinct.join(', ')}]`;
}

/** Whether a binding allows the request. The reason of a refusal is '', unless a binding names a missing role. */
export function decideByRbac(user: RbacUser, request: RuleRequest, view: PolicyView): RbacAnswer {
  const faults: string[] = [];
  for (const grant of grantsOf(user, view)) {
    if (grant.kind === 'fault') faults.push(grant.message);
    else if (grant.rules.some((rule) => ruleAllows(rule, request))) {
      return { allowed: true, reason: `RBAC: allowed by ${grant.source}` };
    }
  }
  return { allowed: false, reason: faults.length === 0 ? '' : `RBAC: ${faultsText(faults)}` };
}

/** All rules of a user in a namespace, and the faults that may make them incomplete. */
export function rulesGranted(user: RbacUser, view: PolicyView): { rules: PolicyRule[]; faults: string[] } {
  const rules: PolicyRule[] = [];
  const faults: string[] = [];
  for (const grant of grantsOf(user, view)) {
    if (grant.kind === 'fault') faults.push(grant.message);
    else rules.push(...grant.rules);
  }
  return { rules, faults };
}
