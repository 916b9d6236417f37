/**
 * A user may only grant rules that the user holds. Kubernetes: "Using RBAC Authorization", privilege escalation
 * prevention; upstream pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased.
 *
 * - A role may be written by users who hold all its rules, or have the verb `escalate` on it.
 * - A binding may be written by users who hold all rules of its role, or have the verb `bind` on that role.
 * - The default roles and bindings cannot be written.
 */

import type { Authorizer } from '../../../shared/access/authorizer.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { Call } from '../../../shared/api/call.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { isDefaultPolicy } from '../../../shared/kinds/roles/default-policies.ts';
import { FULL_AUTHORITY, missingRules, ruleLines } from '../../../shared/kinds/roles/policy-rule.ts';
import { RBAC_GROUP } from '../../../shared/kinds/roles/resource.ts';
import { clusterroles, roles } from '../../../shared/kinds/roles/serve.ts';
import type {
  KubeClusterRole,
  KubeObject,
  KubeRole,
  KubeRoleBinding,
  PolicyRule,
} from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

const ROLES: readonly ResourceDescriptor[] = [roles, clusterroles];

interface Write {
  readonly authorizer: Authorizer;
  readonly descriptor: ResourceDescriptor;
  readonly user: UserInfo;
  readonly namespace: string;
  readonly nowMs: number;
}

/** The check for a write of a role or a binding. It throws 403, or 404 for a missing role of a binding. */
export function escalationCheck(authorizer: Authorizer, call: Call): NonNullable<WriteOptions['admit']> {
  const { descriptor, target, user, nowMs } = call;
  const write: Write = { authorizer, descriptor, user, namespace: target.namespace, nowMs };
  return async (next, stored) => {
    const name = next?.metadata.name ?? target.name;
    if (isDefaultPolicy(descriptor, name)) throw status.forbidden(descriptor, name, DEFAULT_POLICY);
    if (next === undefined || (stored !== undefined && isUnchanged(next, stored))) return;
    await (ROLES.includes(descriptor) ? checkRole(write, next, stored) : checkBinding(write, next));
  };
}

const DEFAULT_POLICY =
  'the default roles and bindings cannot be changed; use a role with an aggregation label, or a binding of your own';

/** Changes of owners and finalizers grant nothing: the garbage collector makes them. */
function isUnchanged(next: KubeObject, stored: KubeObject): boolean {
  const content = ({ metadata, ...rest }: KubeObject) => {
    const { ownerReferences: _o, finalizers: _f, managedFields: _m, resourceVersion: _v, ...kept } = metadata;
    return { ...rest, metadata: kept };
  };
  return jsonEqual(content(next), content(stored));
}

async function checkRole(write: Write, next: KubeClusterRole, stored: KubeClusterRole | undefined): Promise<void> {
  const { descriptor } = write;
  const name = next.metadata.name ?? '';
  if (await mayDo(write, 'escalate', descriptor.resource, stored === undefined ? '' : name)) return;
  await refuseMissing(write, name, (next as KubeRole).rules ?? []);
  if (next.aggregationRule === undefined && stored?.aggregationRule === undefined) return;
  if ((await missingOf(write, FULL_AUTHORITY)).missing.length === 0) return;
  throw status.forbidden(descriptor, name, 'must have cluster-admin privileges to use the aggregationRule');
}

async function checkBinding(write: Write, next: KubeRoleBinding): Promise<void> {
  const { authorizer, namespace, nowMs } = write;
  const kind = next.roleRef?.kind === 'Role' ? 'Role' : 'ClusterRole';
  const role = kind === 'Role' ? roles : clusterroles;
  const name = next.roleRef?.name ?? '';
  if (await mayDo(write, 'bind', role.resource, name)) return;
  const rules = await authorizer.rulesOfRole({ kind, name }, namespace, nowMs);
  if (rules === undefined) throw status.notFound(role, name);
  await refuseMissing(write, next.metadata.name ?? '', rules);
}

async function mayDo(
  { authorizer, user, namespace, nowMs }: Write,
  verb: string,
  resource: string,
  name: string,
): Promise<boolean> {
  const question = { verb, group: RBAC_GROUP, resource, subresource: '', namespace, name };
  return (await authorizer.authorize(user, question, nowMs)).allowed;
}

async function missingOf({ authorizer, user, namespace, nowMs }: Write, rules: readonly PolicyRule[]) {
  const held = await authorizer.rulesHeld(user, namespace, nowMs);
  return { missing: missingRules(held.rules, rules) ?? rules, faults: held.faults };
}

/** @throws StatusError 403 with the rules that the user lacks */
async function refuseMissing(write: Write, name: string, rules: readonly PolicyRule[]): Promise<void> {
  const { missing, faults } = await missingOf(write, rules);
  if (missing.length === 0) return;
  const { descriptor, user } = write;
  const groups = user.groups.map(status.quote).join(' ');
  const head = `user ${status.quote(user.username)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:`;
  const lines = ruleLines(missing);
  const shown =
    lines.length > LINES_MAX ? [...lines.slice(0, LINES_MAX), `and ${lines.length - LINES_MAX} more`] : lines;
  const errors = faults.length === 0 ? '' : `; resolution errors: [${faults.join(' ')}]`;
  throw status.forbidden(descriptor, name, `${head}\n${shown.join('\n')}${errors}`);
}

/** Lines of a message, at most. */
const LINES_MAX = 200;
