/**
 * The Kubernetes API: one request, one response.
 *
 * Steps: parse the path, authenticate, authorize, answer. What a process answers is its own (Answers). An error of the
 * client becomes a Status. A fault of ours is logged with its cause, each cause once per minute, and becomes a 500 or
 * 503 without detail.
 */

import { type AuditedCall, audit } from '../access/audit.ts';
import { type AccessQuestion, authorize } from '../access/authorize.ts';
import { effectiveUser } from '../access/impersonation.ts';
import type { Visit } from '../access/request-throttle.ts';
import type { UserInfo } from '../access/user-info.ts';
import type { RandomSource } from '../clock.ts';
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { writeRefusal } from '../kinds/effects.ts';
import { namespaces } from '../kinds/registry.ts';
import type { Verb } from '../kinds/stored-resource.ts';
import { type HttpRequest, type HttpResponse, isStatusError, statusResponse, withWarning } from '../kubernetes/http.ts';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import { checkTimeout, parsePath, type ResourceTarget, verbOf, withoutWatchPrefix } from '../kubernetes/request.ts';
import { withJsonBody } from '../kubernetes/request-body.ts';
import { parseFieldSelector } from '../kubernetes/selectors.ts';
import * as status from '../kubernetes/status.ts';
import { pathSegmentName } from '../kubernetes/validate-metadata.ts';
import { StoreFault } from '../store/item-store.ts';
import type { Answers, Call, RequestDependencies, UnstoredRequest } from './call.ts';
import { compressedIfLarge, negotiateShape } from './response-body.ts';

type Serving = RequestDependencies & { readonly answers: Answers };

type Serve = (request: HttpRequest) => Promise<HttpResponse>;

/** The part of a request for the audit log. Set when the request is authenticated and its path is valid. */
interface Audited {
  call?: AuditedCall;
}

export function serveApi(dependencies: RequestDependencies, answers: Answers): Serve {
  return async (request) => {
    const audited: Audited = {};
    const { clock, throttle } = dependencies;
    const visit = throttle?.begin(clock.nowMs());
    try {
      const response = await respond({ ...dependencies, answers }, request, audited, visit);
      await audit(dependencies, audited.call, request, response);
      return response;
    } finally {
      await visit?.end(clock.nowMs());
    }
  };
}

/** Never rejects: every error becomes a Status. */
async function respond(
  dependencies: Serving,
  request: HttpRequest,
  audited: Audited,
  visit: Visit | undefined,
): Promise<HttpResponse> {
  const { clock, noteFault } = dependencies;
  const note = (error: unknown): void =>
    noteFault(error, { method: request.method, path: request.path }, clock.nowMs());
  try {
    return await compressedIfLarge(request, await serve(dependencies, request, audited, visit), dependencies.gzip);
  } catch (error) {
    if (isStatusError(error)) {
      // 504: a node is offline, which is no fault of ours.
      if (error.status.code >= 500 && error.status.code !== 504) note(error);
      return statusResponse(error.status);
    }
    note(error);
    return statusResponse(statusOfFault(error, dependencies.random).status);
  }
}

async function serve(
  dependencies: Serving,
  received: HttpRequest,
  audited: Audited,
  visit: Visit | undefined,
): Promise<HttpResponse> {
  const request = received.method === 'GET' ? withoutWatchPrefix(received) : received;
  const nowMs = dependencies.clock.nowMs();
  const parsed = parsePath(request.path);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.reason);
  const open = parsed.kind === 'other' ? await dependencies.answers.publicPath?.(parsed.path, request) : undefined;
  if (open !== undefined) return open;
  const caller = await authenticate(dependencies, request, nowMs);
  visit?.admit(caller);
  const user = await effectiveUser(dependencies.authorizer, request.headers, caller, nowMs);
  if (parsed.kind === 'other') {
    return servePath(dependencies, request, { path: parsed.path, user, nowMs });
  }
  return serveResource(dependencies, request, { target: parsed.target, user, nowMs }, { audited, caller });
}

/** A path that is not a resource. Its verb is the method in lower case, as upstream. */
async function servePath(
  dependencies: Serving,
  request: HttpRequest,
  { path, user, nowMs }: { readonly path: string; readonly user: UserInfo; readonly nowMs: number },
): Promise<HttpResponse> {
  const verb = request.method.toLowerCase();
  const access = await dependencies.authorizer.authorizePath(user, { verb, path }, nowMs);
  if (!access.allowed) throw status.pathDenied(user.username, verb, path, access.reason);
  const isRead = verb === 'get' || verb === 'head';
  const answer = isRead ? await dependencies.answers.path?.(path, request, nowMs) : undefined;
  if (answer === undefined) throw status.unknownPath();
  return answer;
}

async function authenticate(
  { authenticator, noteRefusal }: RequestDependencies,
  request: HttpRequest,
  nowMs: number,
): Promise<UserInfo> {
  const authentication = await authenticator.authenticate(request.headers, nowMs);
  if (authentication.kind === 'refused') noteRefusal(authentication.reason, request.sourceIp, nowMs);
  if (authentication.kind !== 'authenticated') throw status.unauthorized();
  return authentication.user;
}

async function serveResource(
  dependencies: Serving,
  request: HttpRequest,
  { target, user, nowMs }: Pick<Call, 'target' | 'user' | 'nowMs'>,
  { audited, caller }: { readonly audited: Audited; readonly caller: UserInfo },
): Promise<HttpResponse> {
  const verb = verbOf(request.method, target, request.query);
  if (verb === undefined) throw status.methodNotAllowedHere();
  if (verb !== 'watch') checkTimeout(request.query);
  const call = { request, target, user, nowMs };
  const auditedCall = { user: caller, actingAs: user, verb, target, nowMs };
  const unstored: UnstoredRequest = {
    ...call,
    verb,
    requireAccess: (other = verb) => refuseUnauthorized(dependencies, other, call),
    audit(other = verb) {
      audited.call = { ...auditedCall, verb: other };
    },
  };
  const answer = dependencies.answers.unstored?.(unstored);
  if (answer !== undefined) return answer;
  const descriptor = await dependencies.descriptorOf(target.group, target.version, target.resource);
  if (descriptor === undefined) throw status.unknownPath();
  refuseMisplaced(descriptor, target, verb);
  audited.call = auditedCall;
  await refuseUnauthorized(dependencies, verb, call);
  refuseImpossible(descriptor, target);
  // No body is parsed before its request is authorized.
  const inJson = await withJsonBody(request, dependencies.readYaml, descriptor.bodyBytesMax);
  const shape = negotiateShape(request.headers['accept'] ?? '', request.query);
  // The path of a Namespace names it as its own namespace, and is authorized as such. It is stored without a namespace.
  const place = descriptor.namespaced ? target : { ...target, namespace: '' };
  const accessRefusal = (atMs: number) => refusalLater(dependencies, verb, { ...call, nowMs: atMs });
  const answerVerb = dependencies.answers.verbs[verb];
  if (answerVerb === undefined) throw status.unknownPath();
  const response = await answerVerb({
    request: inJson,
    descriptor,
    target: place,
    shape,
    nowMs,
    user,
    caller,
    accessRefusal,
  });
  const deprecation = descriptor.custom?.deprecation?.();
  return deprecation === undefined ? response : withWarning(response, deprecation);
}

type Question = Pick<Call, 'request' | 'target' | 'user' | 'nowMs'>;

async function refuseUnauthorized(dependencies: Serving, verb: Verb, call: Question): Promise<void> {
  const refusal = await refusalOf(dependencies, verb, call);
  if (refusal !== undefined) throw refusal;
}

/** undefined: the request is allowed. @param ageMaxMs age of the roles and bindings that is accepted */
async function refusalOf(
  { authorizer }: Pick<RequestDependencies, 'authorizer'>,
  verb: Verb,
  { request, target, user, nowMs }: Question,
  ageMaxMs?: number,
): Promise<status.StatusError | undefined> {
  const question = questionOf(verb, { request, target });
  const access = await authorizer.authorize(user, question, nowMs, ageMaxMs);
  if (access.allowed) return undefined;
  const { subresource, namespace } = target;
  const denied = { user: user.username, verb, target, subresource, namespace, name: question.name };
  return status.accessDenied(denied, access.reason);
}

/** The age of the roles and bindings for a request that continues. Milliseconds. */
const LATER_AGE_MS = 500;

/** Built-in rules do not change: what they allow costs nothing. */
const refusalLater = async (
  dependencies: Pick<RequestDependencies, 'authorizer'>,
  verb: Verb,
  call: Question,
): Promise<status.StatusError | undefined> =>
  authorize(call.user, questionOf(verb, call)).allowed ? undefined : refusalOf(dependencies, verb, call, LATER_AGE_MS);

function questionOf(verb: Verb, { request, target }: Pick<Call, 'request' | 'target'>) {
  const { query } = request;
  // The list itself refuses a malformed selector, later.
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  const exactField = fields.kind === 'parsed' ? fields.exact : undefined;
  const name = target.name === '' ? selectedName(verb, exactField) : target.name;
  return { verb, ...target, name, query, ...defined({ exactField }) };
}

/**
 * A list or watch of one name is authorized as a request for that object, so rules with resource names allow it.
 * A deletion of a collection is not. '': none. Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
 */
function selectedName(verb: Verb, exactField: AccessQuestion['exactField']): string {
  const name = verb === 'list' || verb === 'watch' ? (exactField?.('metadata.name') ?? '') : '';
  return pathSegmentName(name, false).length === 0 ? name : '';
}

/** No namespace has a longer name (apimachinery validation, IsDNS1123Label). Characters. */
const NAMESPACE_LENGTH_MAX = 63;

/** A name that no object can have is not found. It is never looked up: it may be longer than a key of the store. */
function refuseImpossible(descriptor: ResourceDescriptor, { namespace, name }: ResourceTarget): void {
  if (name.length > NAME_LENGTH_MAX) throw status.notFound(descriptor, name);
  if (namespace.length > NAMESPACE_LENGTH_MAX && descriptor.namespaced) throw status.notFound(namespaces, namespace);
}

/** Refuses a namespace on a cluster-scoped resource, a missing namespace, and an unknown subresource. */
function refuseMisplaced(descriptor: ResourceDescriptor, target: ResourceTarget, verb: Verb): void {
  if (!descriptor.namespaced && target.namespace !== '' && target.resource !== 'namespaces') throw status.unknownPath();
  const needsNamespace = target.name !== '' || verb === 'create' || verb === 'deletecollection';
  if (descriptor.namespaced && needsNamespace && target.namespace === '') {
    throw descriptor.custom === undefined ? status.methodNotAllowedHere() : status.unknownPath();
  }
  if (target.subresource === '') {
    const addressed = target.name === '' ? verb !== 'update' && verb !== 'patch' : verb !== 'create';
    if (!addressed) throw status.methodNotAllowedHere();
    if (descriptor.verbs.includes(verb)) return;
    const why = writeRefusal(descriptor, verb);
    throw why === undefined ? status.methodNotAllowedHere() : status.notServed(why);
  }
  const subresource = descriptor.subresources.find((each) => each.name === target.subresource);
  if (subresource === undefined) throw status.unknownPath();
  if (!subresource.verbs.includes(verb)) throw status.methodNotAllowedHere();
}

const RETRY_AFTER_SECONDS_MIN = 1;
const RETRY_AFTER_SECONDS_MAX = 3;

const MESSAGES: Readonly<Record<'throttled' | 'unanswered', string>> = {
  throttled: 'the tables cannot accept the request at present, please try again',
  unanswered: 'the tables did not answer in time, and may have accepted the request; please try again',
};

/**
 * The answer to a request that failed through a fault of ours, without detail.
 *
 * Tables that are throttled, do not answer, or let other writers win every attempt can accept the request later: the
 * answer is 503 with Retry-After. client-go, and so kubectl, then sends the request again, ten times at most
 * (rest/with_retry.go). Upstream asks for it as well while etcd cannot be reached (apiserver,
 * pkg/storage/errors/storage.go). The seconds are random: the clients of one outage must not return together.
 */
export function statusOfFault(fault: unknown, random: Pick<RandomSource, 'fraction'>): status.StatusError {
  if (!(fault instanceof StoreFault) || !fault.retryable) {
    return status.internalError('the request could not be completed', { cause: fault });
  }
  const choices = RETRY_AFTER_SECONDS_MAX - RETRY_AFTER_SECONDS_MIN + 1;
  const retryAfterSeconds = RETRY_AFTER_SECONDS_MIN + Math.floor(random.fraction() * choices);
  const message = MESSAGES[fault.code === 'throttled' ? 'throttled' : 'unanswered'];
  return status.serviceUnavailable(message, { retryAfterSeconds, cause: fault });
}
