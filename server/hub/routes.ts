/** Which requests a hub answers from its copy, and which are passed to the cluster. */

import { findResource, storedAs } from '../../shared/kinds/registry.ts';
import { findStored } from '../../shared/kinds/resources.ts';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import { isHealthPath, parsePath, type ResourceTarget, verbOf } from '../../shared/kubernetes/request.ts';
import { upgradeOf } from '../sessions/upgrades.ts';
import { GRANTS } from '../watches/access-withdrawals.ts';

/** The metrics of the hub. /metrics has those of the cluster. */
export const HUB_METRICS_PATH = '/hub/metrics';

export type Route =
  | { readonly kind: 'own'; readonly what: 'health' | 'metrics' }
  /** `resource`: the one in the copy. */
  | { readonly kind: 'copy'; readonly resource?: string }
  /** `changes`: the resource in the copy that the request may change. */
  | { readonly kind: 'pass'; readonly changes?: string };

/** Subresources with the object itself as their answer. */
const WHOLE_OBJECTS = new Set(['', 'status']);
/** Subresources that change nothing. */
const CHANGE_NOTHING = new Set(['token', 'exec', 'attach', 'portforward', 'proxy', 'log']);
const DOCUMENTS = /^\/(version|apis?(\/.*)?|openapi\/.*)$/;

/**
 * @param holds whether lists and watches of a resource can be answered from the copy
 */
export function routeOf(
  request: Pick<HttpRequest, 'method' | 'path' | 'query' | 'headers'>,
  holds: (resource: string) => boolean,
): Route {
  const { method, path, query } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  if (isHealthPath(path)) return { kind: 'own', what: 'health' };
  if (path === HUB_METRICS_PATH) return { kind: 'own', what: 'metrics' };
  const parsed = parsePath(path);
  // Without roles and bindings no user can be authorized here.
  const authorizes = [...GRANTS].every(holds);
  if (parsed.kind !== 'resource') {
    const isOurs = parsed.kind === 'malformed' || (isRead && authorizes && DOCUMENTS.test(parsed.path));
    return isOurs ? { kind: 'copy' } : { kind: 'pass' };
  }
  const { target } = parsed;
  const resource = heldResource(target, holds);
  if (resource === undefined) return { kind: 'pass' };
  const { subresource } = target;
  if (!isRead) return CHANGE_NOTHING.has(subresource) ? { kind: 'pass' } : { kind: 'pass', changes: resource };
  const isWhole = WHOLE_OBJECTS.has(subresource) && ['get', 'list', 'watch'].includes(verbOf(method, target, query)!);
  return authorizes && isWhole && isKnownUpgrade(request) ? { kind: 'copy', resource } : { kind: 'pass' };
}

/** A watch may be read by WebSocket. */
const isKnownUpgrade = (request: Pick<HttpRequest, 'headers'>): boolean =>
  ['', 'websocket'].includes(upgradeOf(request));

/** The resource in the path, if it is held. Resources of other groups may have the same name. */
function heldResource({ group, version, resource }: ResourceTarget, holds: (resource: string) => boolean) {
  const served = findResource(group, version, resource);
  if (served === undefined) return undefined;
  const stored = storedAs(served);
  return findStored(stored.resource)?.group === stored.group && holds(stored.resource) ? stored.resource : undefined;
}
