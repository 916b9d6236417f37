/**
 * A status that a machine reports to the hub of its site, while the cluster cannot be reached: it is shown, and kept
 * nowhere. The machine sends it to the cluster as well, as soon as it can.
 *
 * A machine speaks of itself alone: of its own Node, and of pods that the copy has bound to it. Only the status is
 * read of what it sends. The rules are those of the cluster (shared/access/node-restriction.ts).
 *
 * The header says that its sender knows all this. For any other client a status is a write, which must not be answered
 * as done before the cluster has it.
 */
import { readsAsNode } from '../../../shared/access/authorize.ts';
import { authorizeNode, type RestrictedObject } from '../../../shared/access/node-restriction.ts';
import { SITE_STATUS_HEADER } from '../../../shared/agents/site-status.ts';
import type { Call, ReadDependencies } from '../../../shared/api/call.ts';
import { defaultPolicy } from '../../../shared/fleet/policy.ts';
import { storedAs } from '../../../shared/kinds/registry.ts';
import { schemaFor } from '../../../shared/kinds/schemas.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { type HttpRequest, type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { patchTransform } from '../../../shared/kubernetes/patch/patch.ts';
import { parsePath } from '../../../shared/kubernetes/request.ts';
import { isPatchType, mediaTypeOf, PATCH_TYPES } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ShownStatuses } from './shown-statuses.ts';

const SHOWN_RESOURCES = new Set(['nodes', 'pods']);

/** Whether the request reports the status of a Node or of a pod for the site. */
export function isSiteStatus({ method, path, headers }: Pick<HttpRequest, 'method' | 'path' | 'headers'>): boolean {
  if (method !== 'PATCH' || headers[SITE_STATUS_HEADER] === undefined) return false;
  const parsed = parsePath(path);
  if (parsed.kind !== 'resource') return false;
  const { group, resource, subresource } = parsed.target;
  return group === '' && SHOWN_RESOURCES.has(resource) && subresource === 'status';
}

export interface AcceptOptions extends Pick<ReadDependencies, 'storageOf'> {
  readonly statuses: Pick<ShownStatuses, 'show'>;
  /** The cluster cannot be reached. */
  readonly isDown: () => boolean;
}

/** One at a time: each begins with the object that the one before has left. */
export function acceptStatuses(options: AcceptOptions): (call: Call) => Promise<HttpResponse> {
  let last: Promise<unknown> = Promise.resolve();
  return (call) => {
    const accepted = last.then(() => accept(options, call));
    last = accepted.catch(() => undefined);
    return accepted;
  };
}

/** @throws StatusError 403, 404, 409, 415, 422 */
async function accept({ storageOf, statuses, isDown }: AcceptOptions, call: Call): Promise<HttpResponse> {
  const { descriptor, target, user } = call;
  const { namespace, name } = target;
  if (!isSiteStatus(call.request)) throw status.methodNotAllowed(descriptor, 'patch');
  if (readsAsNode(user) === undefined) throw status.forbidden(descriptor, name, 'only a node reports for its site');
  if (!isDown()) throw status.conflict(descriptor, name, 'the cluster can be reached, and has the statuses');
  const stored = await storageOf(storedAs(descriptor)).get(namespace, name);
  if (stored === undefined) throw status.notFound(descriptor, name);
  refuseOthers(call, stored, stored);
  const next = await patched(call, stored);
  refuseOthers(call, stored, next);
  const shown = { ...stored, ...(next.status !== undefined && { status: next.status }) };
  if (!jsonEqual(shown, stored)) await statuses.show({ resource: descriptor.resource, namespace, name }, shown, stored);
  return json(202, ACCEPTED);
}

const ACCEPTED = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 202 };

function refuseOthers({ descriptor, target, user }: Call, stored: KubeObject, next: KubeObject): void {
  const { group: apiGroup, resource, subresource, namespace, name } = target;
  const verdict = authorizeNode({
    user: { name: user.username, groups: user.groups },
    ...{ verb: 'patch', apiGroup, resource, subresource, namespace, name },
    object: next as RestrictedObject,
    stored: stored as RestrictedObject,
  });
  if (verdict.kind === 'forbidden') throw status.forbidden(descriptor, name, verdict.message);
}

async function patched({ descriptor, target, request, nowMs, user }: Call, stored: KubeObject): Promise<KubeObject> {
  const { name, group, subresource } = target;
  const type = mediaTypeOf(request.headers);
  if (!isPatchType(type) || type === 'application/apply-patch+yaml') throw status.unsupportedMediaType(PATCH_TYPES);
  const { transform } = patchTransform(descriptor, schemaFor(descriptor), type, request.body, 'Ignore');
  const next = await transform(stored);
  const { uid = '' } = next.metadata;
  if (uid !== stored.metadata.uid) throw status.conflict(descriptor, name, `the object here has another uid`);
  const context = { nowMs, user, defaultTolerationSeconds: defaultPolicy.podEvictionTimeoutSeconds, subresource };
  const prepared = descriptor.prepareForUpdate(next, stored, context);
  const causes = descriptor.validate(prepared, { operation: 'update', subresource, old: stored, group });
  if (causes.length > 0) throw status.invalid(descriptor, name, causes);
  return prepared;
}
