/**
 * The verb, group, version, resource, namespace, name and subresource of an HTTP request.
 * Kubernetes: "API overview", request verbs; upstream k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
 */
import type { Verb } from '../../kinds/stored-resource.ts';
import { isAskedFor } from './options.ts';

/** A path below /api/v1 or /apis/<group>/<version>. */
export interface ResourceTarget {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** '' for a cluster-scoped resource, and for a list in all namespaces. */
  readonly namespace: string;
  /** '' for a collection. */
  readonly name: string;
  /** '' for the object itself. */
  readonly subresource: string;
}

export type ParsedPath =
  | { readonly kind: 'resource'; readonly target: ResourceTarget }
  /** Not a resource: discovery, version, OpenAPI or health. `path`: without a trailing slash. */
  | { readonly kind: 'other'; readonly path: string }
  | { readonly kind: 'malformed'; readonly reason: string };

/** Segments of the deepest resource path: apis, group, version, namespaces, ns, resource, name, subresource. */
const SEGMENTS_MAX = 8;

/** Subresources of a Namespace. Any other segment after /namespaces/<name>/ is a resource in the namespace. */
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

/**
 * Parses a path. Nothing is normalised: a double slash, a dot segment or an escaped slash is refused. The authorized
 * path is therefore the served path.
 */
export function parsePath(path: string): ParsedPath {
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  const raw = trimmed.split('/').slice(1);
  const segments: string[] = [];
  for (const part of raw) {
    let decoded: string;
    try {
      decoded = decodeURIComponent(part);
    } catch {
      return { kind: 'malformed', reason: 'the path is not valid percent-encoding' };
    }
    if (decoded === '.' || decoded === '..' || decoded.includes('/') || decoded.includes('\u0000')) {
      return { kind: 'malformed', reason: 'the path must not contain dot segments or escaped slashes' };
    }
    segments.push(decoded);
  }
  const [root] = segments;
  if (root !== 'api' && root !== 'apis') return { kind: 'other', path: trimmed };
  const prefixLength = root === 'api' ? 2 : 3;
  if (segments.length <= prefixLength) return { kind: 'other', path: trimmed };
  if (segments.length > SEGMENTS_MAX || segments.includes('')) return { kind: 'other', path: trimmed };
  const group = root === 'api' ? '' : (segments[1] ?? '');
  const version = segments[prefixLength - 1] ?? '';
  const rest = segments.slice(prefixLength);
  return { kind: 'resource', target: { group, version, ...placeOf(rest) } };
}

function placeOf(rest: readonly string[]): Omit<ResourceTarget, 'group' | 'version'> {
  const [first = '', second = '', third = '', fourth = '', fifth = ''] = rest;
  const insideNamespace = first === 'namespaces' && rest.length >= 3 && !NAMESPACE_SUBRESOURCES.has(third);
  if (insideNamespace) return { resource: third, namespace: second, name: fourth, subresource: fifth };
  return { resource: first, namespace: first === 'namespaces' ? second : '', name: second, subresource: third };
}

/**
 * The request behind a path of the deprecated form /api/v1/watch/…, which old clients still send. It is the same path
 * without `watch`, with the query option `watch`. A name becomes a field selector. Other requests are returned as they
 * are. Source: requestinfo.go, specialVerbs.
 */
export function withoutWatchPrefix<T extends { readonly path: string; readonly query: URLSearchParams }>(
  request: T,
): T {
  const [, root = '', rest = ''] = WATCH_PREFIX.exec(request.path) ?? [];
  if (root === '') return request;
  const parsed = parsePath(`${root}/${rest}`);
  if (parsed.kind !== 'resource' || parsed.target.subresource !== '') return request;
  const query = new URLSearchParams(request.query);
  query.set('watch', 'true');
  const { name } = parsed.target;
  if (name === '') return { ...request, path: `${root}/${rest}`, query };
  query.set('fieldSelector', `metadata.name=${name}`);
  const collection = rest.replace(/\/$/, '').split('/').slice(0, -1).join('/');
  return { ...request, path: `${root}/${collection}`, query };
}

const WATCH_PREFIX = /^(\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)\/watch\/(.+)$/;

/** The verb of a request on a resource path, undefined for an unsupported HTTP method. */
export function verbOf(method: string, target: ResourceTarget, query: URLSearchParams): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (target.name !== '') return 'get';
      return isAskedFor(query, 'watch') ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return target.name === '' ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}
