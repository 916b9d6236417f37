/** POST of pods/eviction and pods/binding. Their bodies are an Eviction and a Binding. */

import type { Call } from '../../../shared/api/call.ts';
import { schemaOf } from '../../../shared/kinds/schemas.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { dryRunOf } from '../../../shared/kubernetes/request.ts';
import { decodeObject, fieldValidationOf, refuseOtherKind } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { admitBody, admitRestricted } from '../admission/admit-write.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { bindToNode } from './bind-pod.ts';
import { requestedDelete } from './delete-calls.ts';
import { evictPod } from './evict-pod.ts';
import { readObject } from './read-object.ts';

/** @param apiVersions that the kind is served in; a body without apiVersion is read as the first */
export async function readSubresourceBody(
  call: Call,
  kind: string,
  apiVersions: readonly [string, ...string[]],
): Promise<KubeObject> {
  const { request, target } = call;
  const read = await readObject(request.headers, request.body, { apiVersion: apiVersions[0], kind });
  const apiVersion = apiVersions.find((each) => each === read.value.apiVersion) ?? apiVersions[0];
  const schema = schemaOf(apiVersion, kind);
  if (schema === undefined) throw new Error(`no schema of ${apiVersion} ${kind}`);
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const { object } = decodeObject({ kind, version }, schema, read, fieldValidationOf(request.query, 'CreateOptions'));
  refuseOtherKind(kind, object);
  const { name = '', namespace = '' } = object.metadata;
  if (name !== '' && name !== target.name) throw status.badRequest(`name in URL does not match name in ${kind} object`);
  if (namespace !== '' && namespace !== target.namespace) throw status.namespaceMismatch();
  return object;
}

export async function evict(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const eviction = await readSubresourceBody(call, 'Eviction', ['policy/v1', 'policy/v1beta1']);
  const { options, dryRun: inBody } = requestedDelete(eviction.deleteOptions ?? {});
  const dryRun = dryRunOf(call.request.query, 'CreateOptions', inBody);
  const kind = { group: 'policy', version: 'v1', kind: 'Eviction' };
  await admitBody(dependencies, call, eviction, { kind, dryRun });
  await evictPod(dependencies, call.target, options, {
    nowMs: call.nowMs,
    dryRun,
    ...admitRestricted(dependencies, call, 'create'),
  });
  return json(201, status.success(201));
}

export async function bind(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const binding = await readSubresourceBody(call, 'Binding', ['v1']);
  await admitBody(dependencies, call, binding, { kind: { group: '', version: 'v1', kind: 'Binding' } });
  await bindToNode(dependencies, call.target, binding, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(call.request.query, 'CreateOptions'),
  });
  return json(201, status.success(201));
}
