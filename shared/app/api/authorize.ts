/**
 * Who may do what, by group. Kubernetes: "Using RBAC authorization", the default roles of the same names.
 *
 * system:masters and nodekeeper:admins may do everything; nodekeeper:viewers may read; everybody who is authenticated
 * may ask who they are and what they may do, and read discovery.
 */
import type { UserInfo } from '../../ports/authenticator.ts';

export interface AccessQuestion {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export type AccessAnswer =
  | { readonly allowed: true; readonly reason: string }
  | { readonly allowed: false; readonly reason: string };

const ADMIN_GROUPS = new Set(['system:masters', 'nodekeeper:admins']);
/** node-monitor's own beats: they may renew, and make, one Lease that belongs to no node. */
const PROBE_GROUP = 'nodekeeper:probes';
const PROBE_LEASE = 'nodekeeper-probe';
const VIEWER_GROUPS = new Set(['nodekeeper:viewers']);
const READING_VERBS = new Set(['get', 'list', 'watch']);
const SELF_REVIEWS = new Set(['selfsubjectaccessreviews', 'selfsubjectrulesreviews', 'selfsubjectreviews']);

export function authorize(user: UserInfo, question: AccessQuestion): AccessAnswer {
  if (user.groups.some((group) => ADMIN_GROUPS.has(group))) return { allowed: true, reason: 'admin' };
  if (question.verb === 'create' && SELF_REVIEWS.has(question.resource))
    return { allowed: true, reason: 'self review' };
  if (user.groups.some((group) => VIEWER_GROUPS.has(group)) && READING_VERBS.has(question.verb)) {
    return { allowed: true, reason: 'viewer' };
  }
  if (user.groups.includes(PROBE_GROUP) && isProbeLease(question)) return { allowed: true, reason: 'probe' };
  return { allowed: false, reason: '' };
}

function isProbeLease({ verb, resource, namespace, name }: AccessQuestion): boolean {
  if (resource !== 'leases' || namespace !== 'kube-node-lease') return false;
  // A create names its Lease in the body; any name it could make there would belong to no node either.
  return verb === 'create' || ((verb === 'update' || verb === 'patch' || verb === 'get') && name === PROBE_LEASE);
}
