/**
 * The connections of an agent that answer exec, attach and port-forward. A node may use only the paths of its own name.
 */
import { authorize, nodeIdentity } from '../../../shared/access/authorize.ts';
import type { UnstoredRequest } from '../../../shared/api/call.ts';
import type { HttpResponse } from '../../../shared/kubernetes/http.ts';
import * as status from '../../../shared/kubernetes/status.ts';

/** Accepts the line of a node, or with an id the connection of one session. @throws StatusError */
export type AcceptNodeSession = (nodeName: string, sessionId: string, asked: UnstoredRequest) => HttpResponse;

/** @throws StatusError 403 for everybody but the node, 404, 405 */
export async function answerNodeSessions(accept: AcceptNodeSession, asked: UnstoredRequest): Promise<HttpResponse> {
  const { target, user, verb } = asked;
  const access = authorize(user, { ...target, verb, subresource: '' });
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  // Who may read everything is no node: it would receive the sessions of others.
  if (!access.allowed || identity.kind !== 'node' || identity.nodeName !== target.name) {
    throw status.accessDenied({ ...target, user: user.username, verb, target }, access.allowed ? '' : access.reason);
  }
  if (target.name === '' || target.namespace !== '') throw status.unknownPath();
  if (verb !== 'get') throw status.methodNotAllowedHere();
  return accept(target.name, target.subresource, asked);
}
