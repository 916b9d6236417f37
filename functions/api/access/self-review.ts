/**
 * Self reviews: `kubectl auth whoami` and `kubectl auth can-i`. Nothing is stored. The responses come from the rule
 * that authorizes every request.
 */

import type { Authorizer } from '../../../shared/access/authorizer.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import { refuseUnacceptable } from '../../../shared/api/response-body.ts';
import { defined } from '../../../shared/defined.ts';
import { writeRefusal } from '../../../shared/kinds/effects.ts';
import { resources } from '../../../shared/kinds/registry.ts';
import { ALL_VERBS } from '../../../shared/kinds/stored-resource.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { json } from '../../../shared/kubernetes/http.ts';
import { isRecord, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { readObject } from '../verbs/read-object.ts';
import { findSelfReview } from './self-reviews.ts';

/** Returns undefined for another resource. The user may ask: every authenticated user may. */
export const answerSelfReviews =
  (authorizer: Authorizer): ServeDependencies['selfReview'] =>
  async ({ target, request, user, nowMs }) => {
    const review = findSelfReview(target.group, target.version, target.resource);
    if (review === undefined) return undefined;
    if (target.name !== '' || request.method !== 'POST') throw status.methodNotAllowedHere();
    refuseUnacceptable(request.headers['accept'] ?? '', false);
    const apiVersion = `${review.group}/${review.version}`;
    const head = { kind: review.kind, apiVersion, metadata: { creationTimestamp: null } };
    const read = await readObject(request.headers, request.body, { apiVersion, kind: review.kind });
    const spec = recordOf(read.value.spec);
    switch (review.kind) {
      case 'SelfSubjectReview':
        return json(201, { ...head, status: { userInfo: userInfoOf(user) } });
      case 'SelfSubjectAccessReview':
        return json(201, { ...head, spec, status: await accessStatus(authorizer, user, spec, review.kind, nowMs) });
      default:
        return json(201, {
          ...head,
          spec,
          status: await rulesStatus(authorizer, user, textOf(spec['namespace']), nowMs),
        });
    }
  };

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

const ATTRIBUTES_RULE = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';

/** The faults of the attributes. Source: pkg/apis/authorization/validation/validation.go. */
export function attributesFaults({ resourceAttributes: resource, nonResourceAttributes: path }: AccessReviewSpec) {
  if (isRecord(resource) !== isRecord(path)) return [];
  return isRecord(resource)
    ? [invalidValue('spec.nonResourceAttributes', path, 'cannot be specified in combination with resourceAttributes')]
    : [invalidValue('spec.resourceAttributes', null, ATTRIBUTES_RULE)];
}

/** @throws StatusError 422 unless exactly one of the attributes is set. It names `kind`. */
export async function accessStatus(
  authorizer: Authorizer,
  user: UserInfo,
  spec: AccessReviewSpec,
  kind: string,
  nowMs: number,
) {
  const faults = attributesFaults(spec);
  if (faults.length > 0) throw status.invalid({ group: 'authorization.k8s.io', kind }, '', faults);
  const { resourceAttributes: resource, nonResourceAttributes } = spec;
  const {
    verb,
    group,
    resource: plural,
    subresource,
    namespace,
    name,
    path,
  } = recordOf(resource ?? nonResourceAttributes);
  const answer = isRecord(resource)
    ? await authorizer.authorize(
        user,
        {
          verb: textOf(verb),
          group: textOf(group),
          resource: textOf(plural),
          subresource: textOf(subresource),
          namespace: textOf(namespace),
          name: textOf(name),
        },
        nowMs,
      )
    : await authorizer.authorizePath(user, { verb: textOf(verb), path: textOf(path) }, nowMs);
  const notServed = isRecord(resource)
    ? notServedReason({ group: textOf(group), resource: textOf(plural) }, textOf(subresource), textOf(verb))
    : undefined;
  if (notServed !== undefined) return { allowed: false, reason: notServed };
  return { allowed: answer.allowed, ...defined({ reason: answer.reason === '' ? undefined : answer.reason }) };
}

/** No user may do what is not served, whatever the roles grant. undefined: it is, or the resource is not known. */
function notServedReason(resource: status.ResourceName, subresource: string, verb: string): string | undefined {
  const known = resources.find((each) => each.group === resource.group && each.resource === resource.resource);
  if (known === undefined || subresource !== '') return undefined;
  const isServed = !ALL_VERBS.some((each) => each === verb) || known.verbs.some((each) => each === verb);
  return isServed ? undefined : (writeRefusal(known, verb) ?? status.methodNotAllowed(known, verb).message);
}

/** @throws StatusError 400 without a namespace */
async function rulesStatus(authorizer: Authorizer, user: UserInfo, namespace: string, nowMs: number) {
  if (namespace === '') throw status.badRequest('no namespace on request');
  const { resourceRules, nonResourceRules, fault } = await authorizer.rulesOf(user, namespace, nowMs);
  return {
    resourceRules,
    nonResourceRules,
    incomplete: false,
    ...defined({ evaluationError: fault === '' ? undefined : fault }),
  };
}
