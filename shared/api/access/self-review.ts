/**
 * What the asker is and may do: `kubectl auth whoami`, `kubectl auth can-i`. Nothing is stored; the answers come from
 * the same rule that every request passes.
 */

import { authorize, rulesFor } from '../../domain/access/authorize.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import { isRecord, recordOf, textOf } from '../../kube/normal-form.ts';
import { readObjectBody } from '../../kube/request/body.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { json } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import { findSelfReview } from '../kinds/self-reviews.ts';

export function answerSelfReview(
  target: ResourceTarget,
  request: HttpRequest,
  user: UserInfo,
): HttpResponse | undefined {
  const virtual = findSelfReview(target.group, target.version, target.resource);
  if (virtual === undefined) return undefined;
  if (target.name !== '' || request.method !== 'POST') throw status.methodNotAllowedHere();
  const apiVersion = `${virtual.group}/${virtual.version}`;
  const head = { kind: virtual.kind, apiVersion, metadata: { creationTimestamp: null } };
  const spec = recordOf(readObjectBody(request.headers, request.body).value['spec']);
  switch (virtual.kind) {
    case 'SelfSubjectReview':
      return json(201, { ...head, status: { userInfo: userInfoOf(user) } });
    case 'SelfSubjectAccessReview':
      return json(201, { ...head, spec, status: accessStatus(user, spec) });
    default:
      return json(201, { ...head, spec, status: rulesStatus(user) });
  }
}

const userInfoOf = (user: UserInfo) => ({
  username: user.username,
  ...(user.uid === undefined ? {} : { uid: user.uid }),
  groups: user.groups,
  ...(user.extra === undefined ? {} : { extra: user.extra }),
});

function accessStatus(user: UserInfo, spec: Record<string, unknown>) {
  const resource = spec['resourceAttributes'];
  const path = spec['nonResourceAttributes'];
  if (isRecord(resource) === isRecord(path)) {
    throw status.invalid({ group: 'authorization.k8s.io', kind: 'SelfSubjectAccessReview' }, '', [
      {
        reason: 'FieldValueInvalid',
        field: 'spec.resourceAttributes',
        message: 'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      },
    ]);
  }
  const asked = recordOf(resource ?? path);
  const answer = isRecord(resource)
    ? authorize(user, {
        verb: textOf(asked['verb']),
        group: textOf(asked['group']),
        resource: textOf(asked['resource']),
        subresource: textOf(asked['subresource']),
        namespace: textOf(asked['namespace']),
        name: textOf(asked['name']),
      })
    : authorizePath(user, textOf(asked['verb']));
  return { allowed: answer.allowed, ...(answer.reason === '' ? {} : { reason: answer.reason }) };
}

/** Paths that are no resources (discovery, OpenAPI, version) may be read by everybody who is authenticated. */
function authorizePath(user: UserInfo, verb: string) {
  if (verb === 'get' || verb === 'head') return { allowed: true, reason: 'discovery' };
  return authorize(user, { verb, group: '', resource: '', subresource: '', namespace: '', name: '' });
}

const rulesStatus = (user: UserInfo) => ({
  resourceRules: rulesFor(user),
  nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['*'] }],
  incomplete: false,
});
