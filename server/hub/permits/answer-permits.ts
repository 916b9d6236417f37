/** Machines ask the hub of their site for permits (shared/agents/site-permits.ts). Each asks for itself. */
import { readsAsNode } from '../../../shared/access/authorize.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import { SITE_PERMITS } from '../../../shared/agents/site-permits.ts';
import { type HttpRequest, type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { listOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import { parsePath, type ResourceTarget } from '../../../shared/kubernetes/request.ts';
import { mediaTypeOf, readJson, refuseTooLarge } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { SiteRescheduling } from './site-rescheduling.ts';

/** Pods of one machine. */
const UIDS_MAX = 1_000;

export const isPermitRequest = ({ group, resource }: Pick<ResourceTarget, 'group' | 'resource'>): boolean =>
  group === SITE_PERMITS.group && resource === SITE_PERMITS.resource;

export function asksForPermits({ method, path }: Pick<HttpRequest, 'method' | 'path'>): boolean {
  if (method !== 'POST') return false;
  const parsed = parsePath(path);
  return parsed.kind === 'resource' && isPermitRequest(parsed.target);
}

/** @throws StatusError 400, 403, 405, 413, 415 */
export async function answerPermits(
  site: Pick<SiteRescheduling, 'permit'>,
  { method, headers, body }: Pick<HttpRequest, 'method' | 'headers' | 'body'>,
  user: UserInfo,
): Promise<HttpResponse> {
  const nodeName = readsAsNode(user);
  const denied = {
    user: user.username,
    verb: 'create',
    target: SITE_PERMITS,
    subresource: '',
    namespace: '',
    name: '',
  };
  if (nodeName === undefined) throw status.accessDenied(denied, 'only a node asks for permits');
  if (method !== 'POST') throw status.methodNotAllowedHere();
  if (mediaTypeOf(headers) !== 'application/json') throw status.unsupportedMediaType(['application/json']);
  refuseTooLarge(body);
  const { released, stopped } = recordOf(readJson(body).value);
  return json(200, await site.permit(nodeName, { released: uidsIn(released), stopped: uidsIn(stopped) }));
}

function uidsIn(value: unknown): readonly string[] {
  const uids = listOf(value).map(textOf);
  if (uids.length > UIDS_MAX) throw status.badRequest(`at most ${UIDS_MAX} uids`);
  return uids;
}
