/**
 * Reviews of other users: TokenReview, SubjectAccessReview and LocalSubjectAccessReview. Kubelets, metrics endpoints
 * and proxies ask them. Nothing is stored. Source: upstream pkg/registry/authentication/tokenreview,
 * pkg/registry/authorization, pkg/apis/authorization/validation.
 */

import { ACCOUNT_ISSUER } from '../../../shared/access/account-token.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import { defined } from '../../../shared/defined.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { type HttpRequest, type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { readCreatedOnly } from '../verbs/read-created-only.ts';
import { accessStatus, attributesFaults, userInfoOf } from './self-review.ts';
import { accessReviews } from './self-reviews.ts';

interface ReviewSpec {
  readonly token?: string;
  readonly audiences?: readonly string[];
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly resourceAttributes?: Readonly<Record<string, string>>;
  readonly nonResourceAttributes?: Readonly<Record<string, string>>;
}

const AUTHORIZATION = 'authorization.k8s.io';
const LOCAL_REVIEW = 'LocalSubjectAccessReview';

const findReview = ({ group, version, resource }: ResourceTarget) =>
  accessReviews.find((each) => each.group === group && each.version === version && each.resource === resource);

/** The answer to a review by a user who may ask it. */
export async function answerAccessReview(
  dependencies: ServeDependencies,
  target: ResourceTarget,
  request: HttpRequest,
  nowMs: number,
): Promise<HttpResponse> {
  const review = findReview(target);
  if (review === undefined) throw status.unknownPath();
  const { object, warnings } = await readCreatedOnly(review, target, request);
  const { kind } = review;
  const spec = (object.spec ?? {}) as ReviewSpec;
  const answer =
    kind === 'TokenReview'
      ? await tokenStatus(dependencies, spec, nowMs)
      : await subjectStatus(dependencies, { kind, spec, target }, nowMs);
  const head: KubeObject = {
    kind,
    apiVersion: apiVersionOf(review),
    metadata: { ...object.metadata, creationTimestamp: null },
  };
  return json(201, { ...head, spec: object.spec, status: answer }, warningHeaders(warnings));
}

async function tokenStatus(
  { authenticator }: ServeDependencies,
  { token = '', audiences = [] }: ReviewSpec,
  nowMs: number,
) {
  if (token === '') throw status.badRequest('token is required for TokenReview in authentication');
  const wanted = audiences.length === 0 ? [ACCOUNT_ISSUER] : audiences;
  const result = await authenticator.authenticate({ authorization: `Bearer ${token}` }, nowMs, wanted);
  if (result.kind !== 'authenticated') return { user: {}, error: 'invalid bearer token' };
  // Tokens without an audience are for the API itself.
  const accepted = result.audiences ?? wanted.filter((audience) => audience === ACCOUNT_ISSUER);
  if (accepted.length > 0) return { authenticated: true, user: userInfoOf(result.user), audiences: accepted };
  const error = `token audiences [${status.quote(ACCOUNT_ISSUER)}] is invalid for the target audiences [${wanted.map(status.quote).join(' ')}]`;
  return { user: {}, error: `[invalid bearer token, ${error}]` };
}

interface SubjectReview {
  readonly kind: string;
  readonly spec: ReviewSpec;
  readonly target: ResourceTarget;
}

async function subjectStatus({ authorizer }: ServeDependencies, { kind, spec, target }: SubjectReview, nowMs: number) {
  const { user: username = '', groups = [], resourceAttributes, nonResourceAttributes } = spec;
  const causes: status.Cause[] = [];
  if (username === '' && groups.length === 0) {
    causes.push(invalidValue('spec.user', username, 'at least one of user or group must be specified'));
  }
  if (kind === LOCAL_REVIEW) {
    const { namespace = '' } = resourceAttributes ?? {};
    if (nonResourceAttributes !== undefined) {
      const why = 'disallowed on this kind of request';
      causes.push(invalidValue('spec.nonResourceAttributes', nonResourceAttributes, why));
    } else if (namespace !== target.namespace) {
      causes.push(invalidValue('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace'));
    }
  }
  causes.push(...attributesFaults(spec));
  if (causes.length > 0) throw status.invalid({ group: AUTHORIZATION, kind }, '', causes);
  const user: UserInfo = { username, groups, ...defined({ uid: spec.uid, extra: spec.extra }) };
  return accessStatus(authorizer, user, { resourceAttributes, nonResourceAttributes }, kind, nowMs);
}
