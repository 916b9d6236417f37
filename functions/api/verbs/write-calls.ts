/** POST, PUT and PATCH: read the body, run the verb, shape the response. */

import { readsAsNode } from '../../../shared/access/authorize.ts';
import type { Call } from '../../../shared/api/call.ts';
import { shapeObject } from '../../../shared/api/response-body.ts';
import { defined } from '../../../shared/defined.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { nodeidentities, nodes, storedAs } from '../../../shared/kinds/registry.ts';
import { schemaFor } from '../../../shared/kinds/schemas.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { type HttpRequest, type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import { patchTransform, type Transform } from '../../../shared/kubernetes/patch/patch.ts';
import { dryRunOf, type OptionsKind } from '../../../shared/kubernetes/request.ts';
import {
  decodeObject,
  fieldValidationOf,
  isPatchType,
  mediaTypeOf,
  PATCH_TYPES,
  type PatchType,
  refuseOtherKind,
} from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { admitWrite } from '../admission/admit-write.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { createObject } from './create-object.ts';
import {
  applied,
  checkApplyOptions,
  keepsManagedFields,
  loadApply,
  readApplyBody,
  trackingOf,
  untouchedBy,
  writerOf,
} from './managed-fields.ts';
import { modifyObject } from './modify-object.ts';
import { readObject } from './read-object.ts';
import { requestToken } from './request-token.ts';
import { bind, evict } from './subresource-calls.ts';
import { resourceVersionOf, type WrittenObject } from './write-options.ts';

/** Conversion between the served and the stored form. Most kinds have one form. */
const toStored = ({ servedFrom }: ResourceDescriptor, object: KubeObject): KubeObject =>
  servedFrom?.toStored(object) ?? object;
const toServed = ({ servedFrom }: ResourceDescriptor, object: KubeObject): KubeObject =>
  servedFrom?.toServed(object) ?? object;

/** The body in its stored form. Its kind is checked first, because the conversion overwrites it. */
async function readBody(
  call: Call,
  optionsKind: OptionsKind,
): Promise<{ readonly body: KubeObject; readonly warnings: readonly string[] }> {
  const { descriptor, request } = call;
  const expected = { apiVersion: apiVersionOf(descriptor), kind: descriptor.kind };
  const read = await readObject(request.headers, request.body, expected, descriptor.bodyBytesMax);
  const { object, warnings } = decodeObject(
    descriptor,
    schemaFor(descriptor),
    read,
    fieldValidationOf(request.query, optionsKind),
  );
  refuseOtherCustomKind(descriptor, object);
  refuseOtherKind(descriptor.kind, object);
  return { body: toStored(descriptor, object), warnings };
}

/** A custom resource of another kind is invalid, as upstream: pkg/registry/customresource/validator.go. */
function refuseOtherCustomKind(descriptor: ResourceDescriptor, { apiVersion, kind = '', metadata }: KubeObject): void {
  if (descriptor.custom === undefined || kind === '' || kind === descriptor.kind) return;
  if (apiVersion !== apiVersionOf(descriptor)) return;
  const cause = invalidValue('kind', kind, `must be ${descriptor.kind}`);
  throw status.invalid({ ...descriptor, kind }, metadata.name ?? '', [cause]);
}

const writtenResponse = (
  { descriptor, shape, nowMs }: Call,
  { object, created }: WrittenObject,
  warnings: readonly string[],
): HttpResponse => {
  const answer = shapeObject(descriptor, object, shape, nowMs);
  return json(created ? 201 : 200, answer, warningHeaders(warnings));
};

export async function create(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  if (call.target.subresource === 'eviction') return evict(dependencies, call);
  if (call.target.subresource === 'binding') return bind(dependencies, call);
  if (call.target.subresource === 'token') return requestToken(dependencies, call);
  if (call.descriptor === nodeidentities) return enrol(dependencies, call);
  const { descriptor, target, request } = call;
  const { body, warnings } = await readBody(call, 'CreateOptions');
  const admission = admitWrite(dependencies, call, 'create');
  const written = await createObject(dependencies, storedAs(descriptor), target, body, {
    nowMs: call.nowMs,
    user: call.user,
    dryRun: dryRunOf(request.query, 'CreateOptions'),
    ...trackingOf(call, dependencies.storageOf(descriptor), 'CreateOptions'),
    ...admission,
  });
  return writtenResponse(call, written, [...warnings, ...admission.warnings()]);
}

/** Enrolment creates NodeIdentities. It depends on the credential of the request, and not only on the body. */
async function enrol(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  if (dependencies.enrol === undefined) throw status.methodNotAllowed(call.descriptor, 'create');
  return dependencies.enrol(call);
}

export async function update(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const { body, warnings } = await readBody(call, 'UpdateOptions');
  // A body with a resourceVersion comes from an earlier read. An object deleted since then is not created again.
  const mayCreate = descriptor.createOnUpdate && resourceVersionOf(body) === '';
  const admission = admitWrite(dependencies, call, 'update');
  const written = await modifyObject(dependencies, storedAs(descriptor), target, () => body, {
    nowMs: call.nowMs,
    user: call.user,
    dryRun: dryRunOf(request.query, 'UpdateOptions'),
    replaces: true,
    isOwnStatus: isOwnStatus(call),
    ...defined({ uid: body.metadata.uid, whenAbsent: mayCreate ? () => body : undefined }),
    ...trackingOf(call, dependencies.storageOf(descriptor), 'UpdateOptions'),
    ...admission,
  });
  return writtenResponse(call, written, [...warnings, ...admission.warnings()]);
}

export async function patch(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const type = patchTypeOf(call);
  const isApply = type === 'application/apply-patch+yaml';
  const { force } = checkApplyOptions(request.query, isApply);
  if (isApply) return apply(dependencies, call, force);
  const { transform, warnings } = patchTransform(
    descriptor,
    schemaFor(descriptor),
    type,
    request.body,
    fieldValidationOf(request.query, 'PatchOptions'),
  );
  const throughServed: Transform = async (old) => toStored(descriptor, await transform(toServed(descriptor, old)));
  const admission = admitWrite(dependencies, call, 'patch');
  const written = await modifyObject(dependencies, storedAs(descriptor), target, throughServed, {
    nowMs: call.nowMs,
    user: call.user,
    dryRun: dryRunOf(request.query, 'PatchOptions'),
    replaces: false,
    isOwnStatus: isOwnStatus(call),
    mayConfirm: target.subresource === 'status' && !namesVersion(request),
    ...trackingOf(call, dependencies.storageOf(descriptor), 'PatchOptions'),
    ...admission,
  });
  return writtenResponse(call, written, [...warnings(), ...admission.warnings()]);
}

/** Custom resources have no merge keys for it. */
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
const CUSTOM_PATCH_TYPES = PATCH_TYPES.filter((type) => type !== STRATEGIC_PATCH);

/** The media type of a patch. @throws StatusError 415 */
export function patchTypeOf({ descriptor, request }: Call): PatchType {
  const type = mediaTypeOf(request.headers);
  const isCustom = descriptor.custom !== undefined;
  if (isPatchType(type) && !(isCustom && type === STRATEGIC_PATCH)) return type;
  throw status.unsupportedMediaType(isCustom ? CUSTOM_PATCH_TYPES : PATCH_TYPES);
}

const isOwnStatus = ({ descriptor, target, user }: Call): boolean =>
  descriptor === nodes && target.subresource === 'status' && readsAsNode(user) === target.name;

/**
 * True when the patch contains the text `resourceVersion` anywhere. It may be a precondition: of several writers with
 * the same version only one may succeed, so each write needs a new version.
 */
const namesVersion = ({ body }: HttpRequest): boolean => Buffer.from(body).includes('resourceVersion');

async function apply(dependencies: ServeDependencies, call: Call, force: boolean): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const body = await readApplyBody(request.body, dependencies.readYaml, descriptor.bodyBytesMax);
  const settings = {
    applyServerSide: await loadApply(),
    descriptor,
    schema: schemaFor(descriptor),
    writer: writerOf(call, 'PatchOptions'),
    force,
    validation: fieldValidationOf(request.query, 'PatchOptions'),
    ignored: untouchedBy(descriptor, target.subresource),
    within: descriptor.subresources.find(({ name }) => name === target.subresource)?.appliedFields ?? [],
    isTracked: keepsManagedFields(dependencies.storageOf(descriptor), target.namespace),
  };
  let warnings: readonly string[] = [];
  const appliedTo = (live: KubeObject | undefined): KubeObject => {
    const result = applied(settings, body, live);
    warnings = result.warnings;
    refuseOtherKind(descriptor.kind, result.object);
    return toStored(descriptor, result.object);
  };
  const transform: Transform = (old) => appliedTo(toServed(descriptor, old));
  const admission = admitWrite(dependencies, call, 'patch');
  const written = await modifyObject(dependencies, storedAs(descriptor), target, transform, {
    nowMs: call.nowMs,
    user: call.user,
    dryRun: dryRunOf(request.query, 'PatchOptions'),
    replaces: false,
    whenAbsent: () => appliedTo(undefined),
    ...admission,
  });
  return writtenResponse(call, written, [...warnings, ...admission.warnings()]);
}
