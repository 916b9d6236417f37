/**
 * The Kubernetes API: one request in, one answer out.
 *
 * authenticate -> read the path -> authorize -> verb. Everything a client can do wrong ends as a Status; what we did
 * wrong is logged with its cause, each cause once a minute, and answered 500 without detail.
 */

import { authorize } from '../domain/access/authorize.ts';
import type { ResourceDescriptor, Verb } from '../kube/descriptor.ts';
import { parsePath, type ResourceTarget, verbOf } from '../kube/request/request.ts';
import { isStatusError, statusResponse } from '../kube/request/respond.ts';
import { type FieldSelector, parseFieldSelector } from '../kube/selectors.ts';
import * as status from '../kube/status.ts';
import type { HttpRequest, HttpResponse } from '../ports/http.ts';
import { type Act, audit } from './access/audit.ts';
import { namespaces } from './kinds/registry.ts';
import type { Call, ServeDependencies } from './request/call.ts';
import { pack } from './request/pack.ts';
import { negotiateShape } from './request/shape.ts';
import { get, list, watch } from './verbs/read-calls.ts';
import { create, patch, remove, removeCollection, update } from './verbs/write-calls.ts';

/** Paths that load balancers and `kubectl version` ask without credentials, as upstream's public-info roles allow. */
const PUBLIC_PATHS = new Set(['/healthz', '/livez', '/readyz', '/version']);

export function serveApi(dependencies: ServeDependencies): (request: HttpRequest) => Promise<HttpResponse> {
  return async (request) => {
    const seen: { act?: Act } = {};
    const response = await answered(dependencies, request, seen);
    await audit(dependencies, seen.act, request, response);
    return response;
  };
}

async function answered(
  dependencies: ServeDependencies,
  request: HttpRequest,
  seen: { act?: Act },
): Promise<HttpResponse> {
  const { clock, noteFault } = dependencies;
  const note = (error: unknown): void =>
    noteFault(error, { method: request.method, path: request.path }, clock.nowMs());
  try {
    return pack(request, await answer(dependencies, request, seen), dependencies.gzip);
  } catch (error) {
    if (isStatusError(error)) {
      if (error.status.code >= 500) note(error);
      return statusResponse(error.status);
    }
    note(error);
    return statusResponse(status.internalError('the request could not be completed').status);
  }
}

async function answer(
  dependencies: ServeDependencies,
  request: HttpRequest,
  seen: { act?: Act },
): Promise<HttpResponse> {
  const nowMs = dependencies.clock.nowMs();
  const parsed = parsePath(request.path);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.reason);
  if (parsed.kind === 'other' && PUBLIC_PATHS.has(parsed.path)) {
    return dependencies.fixed(parsed.path, request) ?? statusResponse(status.unknownPath().status);
  }
  const authentication = await dependencies.authenticator.authenticate(request.headers, nowMs);
  if (authentication.kind === 'refused') dependencies.noteRefusal(authentication.reason, request.sourceIp, nowMs);
  if (authentication.kind !== 'authenticated') throw status.unauthorized();
  const { user } = authentication;
  dependencies.throttle?.admit(user, nowMs);
  if (Object.keys(request.headers).some((name) => name.startsWith('impersonate-'))) {
    throw status.forbidden(
      { group: '', resource: 'users' },
      request.headers['impersonate-user'] ?? '',
      `User "${user.username}" cannot impersonate resource "users" in API group "" at the cluster scope`,
    );
  }
  if (parsed.kind === 'other') {
    const fixed =
      request.method === 'GET' || request.method === 'HEAD' ? dependencies.fixed(parsed.path, request) : undefined;
    if (fixed === undefined) throw status.unknownPath();
    return fixed;
  }
  const { target } = parsed;
  const verb = verbOf(request.method, target, request.query);
  if (verb === undefined) throw status.methodNotAllowedHere();
  const virtual = dependencies.virtual(target, request, user);
  if (virtual !== undefined) return virtual;
  const descriptor = dependencies.descriptorOf(target.group, target.version, target.resource);
  if (descriptor === undefined) throw status.unknownPath();
  refuseMisplaced(descriptor, target, verb);
  seen.act = { user, verb, target, nowMs };
  const { fields } = selectorsIn(request.query);
  const access = authorize(user, { verb, ...target, ...(fields === undefined ? {} : { exactField: fields.exact }) });
  if (!access.allowed) {
    const { subresource, namespace, name } = target;
    throw status.accessDenied({ user: user.username, verb, target, subresource, namespace, name }, access.reason);
  }
  refuseImpossible(descriptor, target);
  const shape = negotiateShape(request.headers['accept'] ?? '', request.query);
  // The path of a Namespace names it as its own namespace, which is what is authorized; it is stored in none.
  const place = descriptor.namespaced ? target : { ...target, namespace: '' };
  return serveVerb(dependencies, verb, { request, descriptor, target: place, shape, nowMs, user });
}

/** What a list asks for by field, for the authorizer; a selector that cannot be read is refused later, by the list. */
function selectorsIn(query: URLSearchParams): { readonly fields?: FieldSelector } {
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  return fields.kind === 'parsed' ? { fields } : {};
}

/** Longer names are valid for no kind (apimachinery validation, IsDNS1123Subdomain and IsDNS1123Label). Characters. */
const NAME_LENGTH_MAX = 253;
const NAMESPACE_LENGTH_MAX = 63;

/** A name that no object can have is not found. It is never looked up: it may be longer than a key of the store. */
function refuseImpossible(descriptor: ResourceDescriptor, { namespace, name }: ResourceTarget): void {
  if (name.length > NAME_LENGTH_MAX) throw status.notFound(descriptor, name);
  if (namespace.length > NAMESPACE_LENGTH_MAX && descriptor.namespaced) throw status.notFound(namespaces, namespace);
}

/** A path that names a namespace for a cluster-scoped resource, lacks one, or names an unknown subresource. */
function refuseMisplaced(descriptor: ResourceDescriptor, target: ResourceTarget, verb: Verb): void {
  if (!descriptor.namespaced && target.namespace !== '' && target.resource !== 'namespaces') throw status.unknownPath();
  const needsNamespace = target.name !== '' || verb === 'create' || verb === 'deletecollection';
  if (descriptor.namespaced && needsNamespace && target.namespace === '') throw status.methodNotAllowedHere();
  if (target.subresource === '') {
    const addressed = target.name === '' ? verb !== 'update' && verb !== 'patch' : verb !== 'create';
    if (!addressed || !descriptor.verbs.includes(verb)) throw status.methodNotAllowedHere();
    return;
  }
  const subresource = descriptor.subresources.find((each) => each.name === target.subresource);
  if (subresource === undefined) throw status.unknownPath();
  if (!subresource.verbs.includes(verb)) throw status.methodNotAllowedHere();
}

function serveVerb(dependencies: ServeDependencies, verb: Verb, call: Call): Promise<HttpResponse> {
  switch (verb) {
    case 'get':
      return get(dependencies, call);
    case 'list':
      return list(dependencies, call);
    case 'create':
      return create(dependencies, call);
    case 'update':
      return update(dependencies, call);
    case 'patch':
      return patch(dependencies, call);
    case 'delete':
      return remove(dependencies, call);
    case 'deletecollection':
      return removeCollection(dependencies, call);
    case 'watch':
      return watch(dependencies, call);
    default:
      throw status.internalError(`verb ${verb satisfies never}`);
  }
}
