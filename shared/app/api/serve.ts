/**
 * The Kubernetes API: one request in, one answer out.
 *
 * authenticate -> read the path -> authorize -> verb. Everything a client can do wrong ends as a Status; what we did
 * wrong is logged with its cause and answered 500 without detail.
 */

import type { ResourceDescriptor, Verb } from '../../kube/resources/descriptor.ts';
import { storedAs } from '../../kube/resources/registry.ts';
import { schemaOf } from '../../kube/schema/kinds.ts';
import type { StructSchema } from '../../kube/schema/schema.ts';
import { parseFieldSelector, parseLabelSelector, unsupportedField } from '../../kube/selectors.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Authenticator, UserInfo } from '../../ports/authenticator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { Log } from '../../ports/log.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import { authorize } from './authorize.ts';
import { decodeObject, fieldValidationOf, mediaTypeOf, readObjectBody } from './body.ts';
import type { ApiDependencies } from './dependencies.ts';
import { listObjects } from './list.ts';
import { answerLongPoll } from './long-poll.ts';
import { isPatchType, PATCH_TYPES, patchTransform } from './patch.ts';
import { isTrue, parsePath, type ResourceTarget, verbOf } from './request.ts';
import { isStatusError, json, statusResponse, warningHeaders } from './respond.ts';
import { negotiateShape, type Shape, shapeList, shapeObject } from './shape.ts';
import { createObject, type DeleteOptions, deleteObject, modifyObject, type Transform } from './verbs.ts';

export interface ServeDependencies extends ApiDependencies {
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly log: Log;
  readonly changes: ChangeLog;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly descriptorOf: (group: string, version: string, resource: string) => ResourceDescriptor | undefined;
  /** Answers of fixed paths (version, discovery, OpenAPI, health); undefined: there is nothing at this path. */
  readonly fixed: (path: string, request: HttpRequest) => HttpResponse | undefined;
  /** Answers of create-only resources that store nothing (the self reviews). */
  readonly virtual: (target: ResourceTarget, request: HttpRequest, user: UserInfo) => HttpResponse | undefined;
}

interface Call {
  readonly request: HttpRequest;
  readonly descriptor: ResourceDescriptor;
  readonly target: ResourceTarget;
  readonly shape: Shape;
  readonly nowMs: number;
  readonly user: UserInfo;
}

/** Paths that load balancers and `kubectl version` ask without credentials, as upstream's public-info roles allow. */
const PUBLIC_PATHS = new Set(['/healthz', '/livez', '/readyz', '/version']);

export function serveApi(dependencies: ServeDependencies): (request: HttpRequest) => Promise<HttpResponse> {
  return async (request) => {
    try {
      return await answer(dependencies, request);
    } catch (error) {
      if (isStatusError(error)) {
        if (error.status.code >= 500) dependencies.log.error('request failed', { error, path: request.path });
        return statusResponse(error.status);
      }
      dependencies.log.error('request failed', { error, method: request.method, path: request.path });
      return statusResponse(status.internalError('the request could not be completed').status);
    }
  };
}

async function answer(dependencies: ServeDependencies, request: HttpRequest): Promise<HttpResponse> {
  const nowMs = dependencies.clock.nowMs();
  const parsed = parsePath(request.path);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.reason);
  if (parsed.kind === 'other' && PUBLIC_PATHS.has(parsed.path)) {
    return dependencies.fixed(parsed.path, request) ?? statusResponse(status.unknownPath().status);
  }
  const authentication = await dependencies.authenticator.authenticate(request.headers, nowMs);
  if (authentication.kind !== 'authenticated') throw status.unauthorized();
  const { user } = authentication;
  if (request.headers['impersonate-user'] !== undefined || request.headers['impersonate-group'] !== undefined) {
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
  const access = authorize(user, { verb, ...target });
  if (!access.allowed) {
    const { subresource, namespace, name } = target;
    throw status.accessDenied({ user: user.username, verb, target, subresource, namespace, name }, access.reason);
  }
  const shape = negotiateShape(request.headers['accept'] ?? '', request.query);
  return serveVerb(dependencies, verb, { request, descriptor, target, shape, nowMs, user });
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

async function get(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target } = call;
  const object = await dependencies.storageOf(descriptor).get(target.namespace, target.name);
  if (object === undefined) throw status.notFound(descriptor, target.name);
  return json(200, shapeObject(descriptor, object, call.shape, call.nowMs));
}

async function list(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const listed = await listObjects(dependencies.storageOf(descriptor), descriptor, {
    namespace: target.namespace,
    limit: limitOf(request.query),
    continueToken: request.query.get('continue') ?? '',
    ...selectorsOf(descriptor, request.query),
    nowMs: call.nowMs,
  });
  return json(200, shapeList(descriptor, listed, call.shape, call.nowMs));
}

async function watch(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const { query } = request;
  const timeout = query.get('timeoutSeconds') ?? '';
  if (timeout !== '' && !/^\d{1,9}$/.test(timeout)) {
    throw status.badRequest(`timeoutSeconds: Invalid value: ${JSON.stringify(timeout)}: must be a whole number`);
  }
  return answerLongPoll(
    {
      storage: dependencies.storageOf(descriptor),
      changes: dependencies.changes,
      clock: dependencies.clock,
      pause: dependencies.pause,
    },
    {
      descriptor: storedAs(descriptor),
      namespace: target.namespace,
      ...selectorsOf(descriptor, query),
      resourceVersion: query.get('resourceVersion') ?? '',
      shape: call.shape,
      timeoutSeconds: timeout === '' ? undefined : Number(timeout),
      bookmarks: askedFor(query, 'allowWatchBookmarks') || isJavaScriptClient(request),
      sendInitialEvents: askedFor(query, 'sendInitialEvents'),
    },
  );
}

const askedFor = (query: URLSearchParams, parameter: string): boolean =>
  query.has(parameter) && isTrue(query.get(parameter));

/** Its watches cannot ask for bookmarks, and back off for want of a line. */
const isJavaScriptClient = (request: HttpRequest): boolean =>
  (request.headers['user-agent'] ?? '').startsWith('undici') && (request.headers['accept'] ?? '*/*') === '*/*';

/** DELETE of a collection: each object for itself, as upstream; what appears meanwhile stays. */
async function removeCollection(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const wanted = deleteBodyOf(request);
  const listed = await listObjects(dependencies.storageOf(descriptor), descriptor, {
    namespace: target.namespace,
    limit: limitOf(request.query),
    continueToken: request.query.get('continue') ?? '',
    ...selectorsOf(descriptor, request.query),
    nowMs: call.nowMs,
  });
  const dryRun = dryRunOf(request.query, wanted.dryRun);
  for (const object of listed.items) {
    const one = { ...target, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' };
    try {
      await deleteObject(dependencies, storedAs(descriptor), one, wanted.options, { nowMs: call.nowMs, dryRun });
    } catch (error) {
      if (!isStatusError(error) || error.status.code !== 404) throw error;
    }
  }
  return json(200, shapeList(descriptor, listed, call.shape, call.nowMs));
}

function limitOf(query: URLSearchParams): number {
  const text = query.get('limit') ?? '';
  if (text === '') return 0;
  if (!/^\d{1,18}$/.test(text)) {
    throw status.badRequest(`unable to decode query parameter limit: ${JSON.stringify(text)} is not a whole number`);
  }
  return Number(text);
}

function selectorsOf(descriptor: ResourceDescriptor, query: URLSearchParams) {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  if (labels.kind === 'malformed') throw status.badRequest(labels.message);
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  if (fields.kind === 'malformed') throw status.badRequest(fields.message);
  const unsupported = unsupportedField(fields, descriptor);
  if (unsupported !== undefined) throw status.badRequest(unsupported);
  return { labels, fields };
}

/** dryRun=All decides and answers without writing; any other value is refused, as upstream does. */
function dryRunOf(query: URLSearchParams, fromBody: readonly unknown[] = []): boolean {
  const values = [...query.getAll('dryRun'), ...fromBody];
  for (const value of values) {
    if (value !== 'All') {
      throw status.badRequest(`Invalid value: ${JSON.stringify(value)}: dryRun must be "All"`);
    }
  }
  return values.length > 0;
}

/** An object as it is stored: of another face of a resource, that resource's own form. */
function toStored(descriptor: ResourceDescriptor, object: KubeObject): KubeObject {
  return descriptor.servedFrom?.toStored(object) ?? object;
}

async function create(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const read = readObjectBody(request.headers, request.body);
  const { object, warnings } = decodeObject(descriptor, schemaFor(descriptor), read, fieldValidationOf(request.query));
  const stored = toStored(descriptor, object);
  const written = await createObject(dependencies, storedAs(descriptor), target, stored, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query),
  });
  return json(201, shapeObject(descriptor, written.object, call.shape, call.nowMs), warningHeaders(warnings));
}

async function update(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const read = readObjectBody(request.headers, request.body);
  const { object, warnings } = decodeObject(descriptor, schemaFor(descriptor), read, fieldValidationOf(request.query));
  const stored = toStored(descriptor, object);
  const written = await modifyObject(dependencies, storedAs(descriptor), target, () => stored, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query),
    replaces: true,
  });
  return json(200, shapeObject(descriptor, written.object, call.shape, call.nowMs), warningHeaders(warnings));
}

async function patch(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const type = mediaTypeOf(request.headers);
  if (!isPatchType(type) || type === 'application/apply-patch+yaml') throw status.unsupportedMediaType(PATCH_TYPES);
  const { transform, warnings } = patchTransform(
    descriptor,
    schemaFor(descriptor),
    target.name,
    type,
    request.body,
    fieldValidationOf(request.query),
  );
  const throughServed: Transform = async (old) =>
    toStored(descriptor, await transform(descriptor.servedFrom?.toServed(old) ?? old));
  const written = await modifyObject(dependencies, storedAs(descriptor), target, throughServed, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query),
    replaces: false,
  });
  return json(200, shapeObject(descriptor, written.object, call.shape, call.nowMs), warningHeaders(warnings()));
}

interface DeleteBody {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: readonly unknown[];
}

interface WantedDelete {
  readonly options: DeleteOptions;
  readonly dryRun: readonly unknown[];
}

function deleteBodyOf(request: HttpRequest): WantedDelete {
  const body: DeleteBody =
    request.body.byteLength === 0 ? {} : (readObjectBody(request.headers, request.body).value as DeleteBody);
  const queryGrace = request.query.get('gracePeriodSeconds');
  const graceSeconds = body.gracePeriodSeconds ?? (queryGrace === null ? undefined : Number(queryGrace));
  if (graceSeconds !== undefined && !Number.isInteger(graceSeconds)) {
    throw status.badRequest('gracePeriodSeconds must be a whole number of seconds');
  }
  return {
    options: {
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
      ...(body.preconditions === undefined ? {} : { preconditions: body.preconditions }),
    },
    dryRun: body.dryRun ?? [],
  };
}

async function remove(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const wanted = deleteBodyOf(request);
  const deleted = await deleteObject(dependencies, storedAs(descriptor), target, wanted.options, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query, wanted.dryRun),
  });
  return json(200, deleteAnswer(call, deleted.object, deleted.gone));
}

/** Pods answer the object itself, everything else a Success that names what went, as upstream's stores are set up. */
function deleteAnswer(call: Call, object: KubeObject, gone: boolean): unknown {
  const { descriptor } = call;
  if (!gone || descriptor.resource === 'pods') return shapeObject(descriptor, object, call.shape, call.nowMs);
  return status.success(200, status.deletedDetails(descriptor, object.metadata.name ?? '', object.metadata.uid ?? ''));
}

/** The schema objects of a resource are read with. */
function schemaFor(descriptor: ResourceDescriptor): StructSchema {
  const apiVersion = descriptor.group === '' ? descriptor.version : `${descriptor.group}/${descriptor.version}`;
  const schema = schemaOf(apiVersion, descriptor.kind);
  if (schema === undefined) throw new Error(`no schema of ${apiVersion} ${descriptor.kind}`);
  return schema;
}
