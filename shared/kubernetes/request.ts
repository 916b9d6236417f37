/**
 * The verb, group, version, resource, namespace, name, subresource and options of an HTTP request.
 * Kubernetes: "API overview", request verbs; upstream k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
 */

import type { Verb } from '../kinds/stored-resource.ts';
import { forbiddenField, notSupported } from './causes.ts';
import * as status from './status.ts';
import { parseInt64, parseUint64 } from './whole-number.ts';

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

// Options in the query are read as upstream converts them: k8s.io/apimachinery pkg/runtime/conversion.go.

/**
 * A boolean option. It is false when absent, `0`, or `false` in upper or lower case. Any other text is true, the empty
 * text included. The Python client sends `watch=True`. Only the first value of a repeated option is used.
 * Source: Convert_Slice_string_To_bool.
 */
export function isAskedFor(query: URLSearchParams, option: string): boolean {
  const value = query.get(option);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/**
 * An int64 option, undefined when absent. The result is limited to ±Number.MAX_SAFE_INTEGER. Only the first value of a
 * repeated option is used. @throws StatusError 400 for another text
 */
export function wholeNumberOf(query: URLSearchParams, option: string): number | undefined {
  const text = query.get(option);
  if (text === null) return undefined;
  const parsed = parseInt64(text);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.message);
  return parsed.value;
}

/** A duration in Go's form, such as 32s or 1m30s. Go accepts both characters for micro. */
const GO_DURATION = /^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;

/**
 * Checks `timeout`, the deadline that a client sets for its request. It is not used: a request ends sooner anyway.
 *
 * @throws StatusError 400 for a text that is no duration
 */
export function checkTimeout(query: URLSearchParams): void {
  const timeout = query.get('timeout') ?? '';
  if (timeout === '' || GO_DURATION.test(timeout)) return;
  throw status.badRequest('invalid timeout specified in the request URL');
}

/** The page size of a list. 0 or less in the query means no limit and returns 0. */
export const limitOf = (query: URLSearchParams): number => Math.max(0, wholeNumberOf(query, 'limit') ?? 0);

/** The object that the options of a verb are decoded into upstream. Refusals name it. */
export type OptionsKind = 'CreateOptions' | 'DeleteOptions' | 'ListOptions' | 'PatchOptions' | 'UpdateOptions';

/** The 422 for options that fail validation. */
export const optionsFault = (kind: OptionsKind, causes: readonly status.Cause[]): status.StatusError =>
  status.invalid({ group: 'meta.k8s.io', kind }, '', causes);

/** Whether the request is a dry run (dryRun=All). @throws StatusError 422 for any other value */
export function dryRunOf(query: URLSearchParams, kind: OptionsKind, fromBody: readonly unknown[] = []): boolean {
  const values = [...query.getAll('dryRun'), ...fromBody];
  if (values.some((value) => value !== 'All')) throw optionsFault(kind, [notSupported('dryRun', values, ['All'])]);
  return values.length > 0;
}

// Options of lists and watches. Source: k8s.io/apimachinery pkg/apis/meta/internalversion/validation
// (ValidateListOptions) and k8s.io/apiserver pkg/storage/cacher.

/** A resourceVersion is milliseconds and a counter of three digits (shared/store/layout.ts). */
const VERSIONS_PER_MS = 1_000;
/** Clocks of our processes may differ by this much. Milliseconds. */
const CLOCK_SKEW_MS = 60_000;
/** Seconds after which a client asks again for a version that does not exist yet. */
const RETRY_SECONDS = 1;

/**
 * Checks the options of a list. Lists read the newest state, which satisfies every version that exists.
 *
 * @throws StatusError 400, 422, or 504 for a resourceVersion of the future
 */
export function checkListOptions(query: URLSearchParams, nowMs: number): void {
  const match = query.get('resourceVersionMatch') ?? '';
  const version = query.get('resourceVersion') ?? '';
  const token = query.get('continue') ?? '';
  const causes: status.Cause[] = [];
  if (match !== '') {
    if (version === '') {
      causes.push(refusedMatch('resourceVersionMatch is forbidden unless resourceVersion is provided'));
    }
    if (token !== '') causes.push(MATCH_OF_CONTINUED);
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      causes.push(notSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan', '']));
    }
    if (match === 'Exact' && version === '0') {
      causes.push(refusedMatch('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (query.has('sendInitialEvents')) {
    causes.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  if (causes.length > 0) throw optionsFault('ListOptions', causes);
  if (token !== '' && version !== '' && version !== '0') {
    throw status.badRequest('specifying resource version is not allowed when using continue');
  }
  refuseFutureVersion(query, nowMs);
  // Only the newest state is kept, so an older one no longer exists.
  if (match === 'Exact') throw status.expired(`The resourceVersion for the provided list is too old.`);
}

/**
 * Checks the options of a watch.
 *
 * @throws StatusError 422
 */
export function checkWatchOptions(query: URLSearchParams): void {
  const match = query.get('resourceVersionMatch') ?? '';
  const sendsInitialEvents = query.has('sendInitialEvents');
  const causes: status.Cause[] = [];
  if (sendsInitialEvents && match !== 'NotOlderThan') {
    causes.push(refusedMatch('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  }
  if (match !== '') {
    if (!sendsInitialEvents) {
      causes.push(refusedMatch('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'));
    }
    if (match !== 'NotOlderThan') causes.push(notSupported('resourceVersionMatch', match, ['NotOlderThan']));
    if ((query.get('continue') ?? '') !== '') {
      causes.push(MATCH_OF_CONTINUED);
    }
  }
  if (causes.length > 0) throw optionsFault('ListOptions', causes);
}

/**
 * Refuses a resourceVersion that no object can have yet. Versions come from our clock, so this reads nothing.
 *
 * @throws StatusError 400 for a malformed version, 504 for one of the future
 */
export function refuseFutureVersion(query: URLSearchParams, nowMs: number): void {
  const text = query.get('resourceVersion') ?? '';
  if (text === '') return;
  const parsed = parseUint64(text);
  if (parsed.kind === 'malformed') {
    throw status.badRequest(`resourceVersion: Invalid value: ${JSON.stringify(text)}: ${parsed.message}`);
  }
  if (parsed.value <= (nowMs + CLOCK_SKEW_MS) * VERSIONS_PER_MS) return;
  throw status.resourceVersionTooLarge(text, String(nowMs * VERSIONS_PER_MS), RETRY_SECONDS);
}

const refusedMatch = (why: string): status.Cause => forbiddenField('resourceVersionMatch', why);
const MATCH_OF_CONTINUED = refusedMatch('resourceVersionMatch is forbidden when continue is provided');

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

export const isHealthPath = (path: string): boolean => HEALTH_PATHS.has(path);
