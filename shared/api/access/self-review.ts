/**
 * Self reviews: `kubectl auth whoami` and `kubectl auth can-i`. Nothing is stored. The responses come from the rule
 * that authorizes every request.
 */

import { authorize, authorizePath, pathRulesFor, rulesFor } from '../../domain/access/authorize.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import { defined } from '../../domain/defined.ts';
import { isRecord, recordOf, textOf } from '../../kube/normal-form.ts';
import { readObjectBody } from '../../kube/request/body.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { json } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import { findSelfReview } from '../kinds/self-reviews.ts';
import { refuseUnacceptable } from '../request/response-shape.ts';

export function answerSelfReview(
  target: ResourceTarget,
  request: HttpRequest,
  user: UserInfo,
): HttpResponse | undefined {
  const review = findSelfReview(target.group, target.version, target.resource);
  if (review === undefined) return undefined;
  if (target.name !== '' || request.method !== 'POST') throw status.methodNotAllowedHere();
  refuseUnacceptable(request.headers['accept'] ?? '', false);
  const apiVersion = `${review.group}/${review.version}`;
  const head = { kind: review.kind, apiVersion, metadata: { creationTimestamp: null } };
  const spec = recordOf(readObjectBody(request.headers, request.body, { apiVersion, kind: review.kind }).value.spec);
  switch (review.kind) {
    case 'SelfSubjectReview':
      return json(201, { ...head, status: { userInfo: userInfoOf(user) } });
    case 'SelfSubjectAccessReview':
      return json(201, { ...head, spec, status: accessStatus(user, spec, review.kind) });
    default:
      return json(201, { ...head, spec, status: rulesStatus(user) });
  }
}

export const userInfoOf = (user: UserInfo) => ({
  username: user.username,
  ...defined({ uid: user.uid }),
  groups: user.groups,
  ...defined({ extra: user.extra }),
});

/** Self reviews have no schema here, so these fields are not validated. */
interface AccessReviewSpec {
  readonly resourceAttributes?: unknown;
  readonly nonResourceAttributes?: unknown;
}

/** @throws StatusError 422 unless exactly one of the attributes is set. It names `kind`. */
export function accessStatus(
  user: UserInfo,
  { resourceAttributes: resource, nonResourceAttributes: path }: AccessReviewSpec,
  kind: string,
) {
  if (isRecord(resource) === isRecord(path)) {
    throw status.invalid({ group: 'authorization.k8s.io', kind }, '', [
      {
        reason: 'FieldValueInvalid',
        field: 'spec.resourceAttributes',
        message: 'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      },
    ]);
  }
  const { verb, group, resource: plural, subresource, namespace, name, path: pathText } = recordOf(resource ?? path);
  const answer = isRecord(resource)
    ? authorize(user, {
        verb: textOf(verb),
        group: textOf(group),
        resource: textOf(plural),
        subresource: textOf(subresource),
        namespace: textOf(namespace),
        name: textOf(name),
      })
    : authorizePath(user, { verb: textOf(verb), path: textOf(pathText) });
  return { allowed: answer.allowed, ...defined({ reason: answer.reason === '' ? undefined : answer.reason }) };
}

const rulesStatus = (user: UserInfo) => ({
  resourceRules: rulesFor(user),
  nonResourceRules: pathRulesFor(user),
  incomplete: false,
});
