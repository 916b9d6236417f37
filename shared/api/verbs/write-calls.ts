/** Requests that change objects: read the body, run the verb, shape the answer. */

import { readsAsNode } from '../../domain/access/authorize.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { isPatchType, PATCH_TYPES, patchTransform } from '../../kube/patch/patch.ts';
import type { Transform } from '../../kube/patch/transform.ts';
import { decodeObject, fieldValidationOf, mediaTypeOf, readObjectBody } from '../../kube/request/body.ts';
import { dryRunOf, limitOf, wholeNumberOf } from '../../kube/request/options.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { isStatusError, json, warningHeaders } from '../../kube/request/respond.ts';
import { schemaOf } from '../../kube/schema/kinds.ts';
import { deleteOptions as deleteOptionsSchema } from '../../kube/schema/meta.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import { admitPriorityClass } from '../admission/admission.ts';
import { deleteNamespace } from '../admission/namespace-lifecycle.ts';
import { nodeRestriction } from '../admission/restrict-node.ts';
import { isSystemPriorityClass, priorityclasses } from '../kinds/priorityclasses.ts';
import { nodeidentities, nodes, storedAs } from '../kinds/registry.ts';
import { type Call, type ServeDependencies, schemaFor, selectorsOf } from '../request/call.ts';
import { shapeList, shapeObject } from '../request/shape.ts';
import { applied, checkApplyOptions, readApplyBody } from './apply.ts';
import { bindToNode } from './binding.ts';
import { type DeletedObject, type DeleteOptions, deleteObject } from './delete.ts';
import { evictPod } from './eviction.ts';
import { trackingOf, untouchedBy, writerOf } from './field-tracking.ts';
import { listObjects } from './list.ts';
import { createObject, modifyObject, type WriteOptions } from './verbs.ts';

/** An object as it is stored: of another face of a resource, that resource's own form. */
const toStored = (descriptor: ResourceDescriptor, object: KubeObject): KubeObject =>
  descriptor.servedFrom?.toStored(object) ?? object;
const toServed = (descriptor: ResourceDescriptor, object: KubeObject): KubeObject =>
  descriptor.servedFrom?.toServed(object) ?? object;

function objectOf(call: Call): { readonly stored: KubeObject; readonly warnings: readonly string[] } {
  const { descriptor, request } = call;
  const read = readObjectBody(request.headers, request.body);
  const { object, warnings } = decodeObject(descriptor, schemaFor(descriptor), read, fieldValidationOf(request.query));
  refuseOtherKind(descriptor.kind, object);
  return { stored: toStored(descriptor, object), warnings };
}

/** Before the conversion to the stored form, which would write over what the body calls itself. */
function refuseOtherKind(kind: string, { kind: given = '', apiVersion = '' }: KubeObject): void {
  if (given !== '' && given !== kind) {
    throw status.badRequest(
      `${given} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${kind}: converting (${given}) to (${kind}): unknown conversion`,
    );
  }
}

/** What refuses a write besides the object itself. Nodes may not write priority classes at all. */
function admission(
  dependencies: ServeDependencies,
  call: Call,
  verb: Parameters<typeof nodeRestriction>[2],
): Pick<WriteOptions, 'admit' | 'admitStored'> {
  const { descriptor, target } = call;
  if (descriptor !== priorityclasses) return nodeRestriction(dependencies, call, verb);
  return { admit: (next) => admitPriorityClass(dependencies, target.name, next) };
}

export async function create(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  if (call.target.subresource === 'eviction') return evict(dependencies, call);
  if (call.target.subresource === 'binding') return bind(dependencies, call);
  if (call.descriptor === nodeidentities) return enrol(dependencies, call);
  const { descriptor, target, request } = call;
  const { stored, warnings } = objectOf(call);
  const written = await createObject(dependencies, storedAs(descriptor), target, stored, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query),
    ...trackingOf(call, dependencies.storageOf(descriptor), 'CreateOptions'),
    ...admission(dependencies, call, 'create'),
  });
  return json(201, shapeObject(descriptor, written.object, call.shape, call.nowMs), warningHeaders(warnings));
}

/** An identity is made of who asks, not of what is sent. */
async function enrol(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  if (dependencies.enrol === undefined) throw status.methodNotAllowed(call.descriptor, 'create');
  return dependencies.enrol(call);
}

export async function update(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const { stored, warnings } = objectOf(call);
  const named = (stored.metadata.resourceVersion ?? '') !== '';
  const written = await modifyObject(dependencies, storedAs(descriptor), target, () => stored, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query),
    replaces: true,
    isOwnStatus: isOwnStatus(call),
    // A version that was read belongs to an object that was there: it is gone, and must not come back by itself.
    ...(descriptor.createOnUpdate && !named ? { whenAbsent: () => stored } : {}),
    ...trackingOf(call, dependencies.storageOf(descriptor), 'UpdateOptions'),
    ...admission(dependencies, call, 'update'),
  });
  return answerOf(call, written, warnings);
}

const answerOf = (
  { descriptor, shape, nowMs }: Call,
  { object, created }: { readonly object: KubeObject; readonly created: boolean },
  warnings: readonly string[],
): HttpResponse => json(created ? 201 : 200, shapeObject(descriptor, object, shape, nowMs), warningHeaders(warnings));

export async function patch(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const type = mediaTypeOf(request.headers);
  if (!isPatchType(type)) throw status.unsupportedMediaType(PATCH_TYPES);
  const isApply = type === 'application/apply-patch+yaml';
  const { force } = checkApplyOptions(request.query, isApply);
  if (isApply) return apply(dependencies, call, force);
  const { transform, warnings } = patchTransform(
    descriptor,
    schemaFor(descriptor),
    target.name,
    type,
    request.body,
    fieldValidationOf(request.query),
  );
  const throughServed: Transform = async (old) => toStored(descriptor, await transform(toServed(descriptor, old)));
  const written = await modifyObject(dependencies, storedAs(descriptor), target, throughServed, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query),
    replaces: false,
    isOwnStatus: isOwnStatus(call),
    mayConfirm: target.subresource === 'status' && !namesVersion(request),
    ...trackingOf(call, dependencies.storageOf(descriptor), 'PatchOptions'),
    ...admission(dependencies, call, 'patch'),
  });
  return answerOf(call, written, warnings());
}

const isOwnStatus = ({ descriptor, target, user }: Call): boolean =>
  descriptor === nodes && target.subresource === 'status' && readsAsNode(user) === target.name;

/** Wherever it stands in a patch: of those who name one version, one may win. */
const namesVersion = ({ body }: HttpRequest): boolean => Buffer.from(body).includes('resourceVersion');

async function apply(dependencies: ServeDependencies, call: Call, force: boolean): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const body = readApplyBody(request.body, dependencies.readYaml);
  const settings = {
    descriptor,
    schema: schemaFor(descriptor),
    writer: writerOf(call, 'PatchOptions'),
    force,
    validation: fieldValidationOf(request.query),
    ignored: untouchedBy(descriptor, target.subresource),
  };
  let warnings: readonly string[] = [];
  const on = (live: KubeObject | undefined): KubeObject => {
    const result = applied(settings, body, live);
    warnings = result.warnings;
    refuseOtherKind(descriptor.kind, result.object);
    return toStored(descriptor, result.object);
  };
  const written = await modifyObject(
    dependencies,
    storedAs(descriptor),
    target,
    (old) => on(toServed(descriptor, old)),
    {
      nowMs: call.nowMs,
      dryRun: dryRunOf(request.query),
      replaces: false,
      whenAbsent: () => on(undefined),
      ...admission(dependencies, call, 'patch'),
    },
  );
  return answerOf(call, written, warnings);
}

interface WantedDelete {
  readonly options: DeleteOptions;
  readonly dryRun: readonly unknown[];
}

const DELETE_OPTIONS = { kind: 'DeleteOptions', version: 'v1' } as const;

function deleteBodyOf(request: HttpRequest): WantedDelete {
  const body =
    request.body.byteLength === 0
      ? {}
      : decodeObject(DELETE_OPTIONS, deleteOptionsSchema, readObjectBody(request.headers, request.body), 'Ignore')
          .object;
  const gracePeriodSeconds = wholeNumberOf(request.query, 'gracePeriodSeconds');
  const { options, dryRun } = wantedDelete(body);
  return {
    options: { ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }), ...options },
    dryRun,
  };
}

/** From DeleteOptions that passed their schema. */
function wantedDelete(options: object): WantedDelete {
  const { gracePeriodSeconds, preconditions, dryRun } = options as DeleteOptions & {
    readonly dryRun?: readonly unknown[];
  };
  return {
    options: {
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(preconditions === undefined ? {} : { preconditions }),
    },
    dryRun: dryRun ?? [],
  };
}

function deleteOne(
  dependencies: ServeDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  wanted: DeleteOptions,
  options: WriteOptions,
): Promise<DeletedObject> {
  return descriptor.group === '' && descriptor.resource === 'namespaces'
    ? deleteNamespace(dependencies, target, wanted, options)
    : deleteObject(dependencies, descriptor, target, wanted, options);
}

export async function remove(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const wanted = deleteBodyOf(request);
  const deleted = await deleteOne(dependencies, storedAs(descriptor), target, wanted.options, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query, wanted.dryRun),
    ...admission(dependencies, call, 'delete'),
  });
  return json(200, deleteAnswer(call, deleted.object, deleted.gone));
}

/** Pods answer the object itself, everything else a Success that names what went, as upstream's stores are set up. */
function deleteAnswer(call: Call, object: KubeObject, gone: boolean): unknown {
  const { descriptor } = call;
  if (!gone || descriptor.resource === 'pods') return shapeObject(descriptor, object, call.shape, call.nowMs);
  return status.deleted(status.deletedDetails(descriptor, object.metadata.name ?? '', object.metadata.uid ?? ''));
}

/** DELETE of a collection: each object for itself, as upstream; what appears meanwhile stays. */
export async function removeCollection(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
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
    // What cannot be deleted by its name stays.
    if (descriptor === priorityclasses && isSystemPriorityClass(object.metadata.name ?? '')) continue;
    const one = { ...target, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' };
    try {
      await deleteOne(dependencies, storedAs(descriptor), one, wanted.options, { nowMs: call.nowMs, dryRun });
    } catch (error) {
      if (!isStatusError(error) || error.status.code !== 404) throw error;
    }
  }
  return json(200, shapeList(descriptor, listed, call.shape, call.nowMs));
}

/** A body of another kind than the resource's, sent to one of its subresources. */
function subresourceBody(call: Call, kind: string, apiVersions: readonly [string, ...string[]]): KubeObject {
  const { request, target } = call;
  const read = readObjectBody(request.headers, request.body);
  const given = read.value['apiVersion'];
  const apiVersion = apiVersions.find((each) => each === given) ?? apiVersions[0];
  const schema = schemaOf(apiVersion, kind);
  if (schema === undefined) throw new Error(`no schema of ${apiVersion} ${kind}`);
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const { object } = decodeObject({ kind, version }, schema, read, fieldValidationOf(request.query));
  refuseOtherKind(kind, object);
  const { name = '', namespace = '' } = object.metadata;
  if (name !== '' && name !== target.name) throw status.badRequest(`name in URL does not match name in ${kind} object`);
  if (namespace !== '' && namespace !== target.namespace) throw status.namespaceMismatch();
  return object;
}

async function evict(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const eviction = subresourceBody(call, 'Eviction', ['policy/v1', 'policy/v1beta1']);
  const { options, dryRun } = wantedDelete(eviction['deleteOptions'] ?? {});
  await evictPod(dependencies, call.target, options, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(call.request.query, dryRun),
    ...admission(dependencies, call, 'create'),
  });
  return json(201, status.success(201));
}

async function bind(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const binding = subresourceBody(call, 'Binding', ['v1']);
  await bindToNode(dependencies, call.target, binding, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(call.request.query),
  });
  return json(201, status.success(201));
}
