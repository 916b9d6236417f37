/**
 * The Status an API server answers with when a request does not end in an object, and one factory a reason.
 * Texts and details follow Kubernetes (staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go), because clients
 * print the first and branch on the second.
 */

import { defined } from '../defined.ts';
import { boundedStatus, CAUSES_MAX, type Cause, type KubeStatus, type StatusDetails } from './status-object.ts';

export type { Cause, KubeStatus, StatusDetails } from './status-object.ts';

/**
 * A request that ends in a Status. Thrown by the API's verbs; the edge writes `status` with `status.code`. It has at
 * most STATUS_BYTES_MAX, whatever the client sent.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: KubeStatus;
  constructor(status: KubeStatus, options?: { readonly cause?: unknown }) {
    const bounded = boundedStatus(status);
    super(bounded.message ?? bounded.reason ?? 'unknown', options);
    this.status = bounded;
  }
}

/** Names a resource in messages: `leases.coordination.k8s.io`, or `nodes` in the core group (''). */
export interface ResourceName {
  readonly group: string;
  readonly resource: string;
}

/** Names a kind in messages: `Lease.coordination.k8s.io`, or `Node` in the core group (''). */
export interface KindName {
  readonly group: string;
  readonly kind: string;
}

const qualified = (name: string, group: string): string => (group === '' ? name : `${name}.${group}`);
export const qualifiedResource = (target: ResourceName): string => qualified(target.resource, target.group);
export const qualifiedKind = (target: KindName): string => qualified(target.kind, target.group);

/** A text in double quotes, escaped the way JSON does (Go's %q agrees for what appears in names and values). */
export const quote = (text: string): string => JSON.stringify(text);

const resourceDetails = (target: ResourceName, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(target.group === '' ? {} : { group: target.group }),
  kind: target.resource,
});

function failure(
  code: number,
  reason: string,
  message: string,
  details?: StatusDetails,
  options?: { readonly cause?: unknown },
): StatusError {
  const status: KubeStatus = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...defined({ details }),
    code,
  };
  return new StatusError(status, options);
}

/** What an eviction and a binding answer. */
export function success(code: number, details?: StatusDetails): KubeStatus {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...defined({ details }),
    code,
  };
}

/** What a DELETE answers when it does not answer the object: a Status without a code, as upstream. */
export const deleted = (details: StatusDetails): Omit<KubeStatus, 'code'> => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details,
});

/** Details of a deleted object: what kubectl compares when it waits for the object to go. */
export const deletedDetails = (target: ResourceName, name: string, uid: string): StatusDetails => ({
  ...resourceDetails(target, name),
  uid,
});

/** 404: the object is not there. */
export const notFound = (target: ResourceName, name: string): StatusError =>
  failure(404, 'NotFound', `${qualifiedResource(target)} ${quote(name)} not found`, resourceDetails(target, name));

/** 404: there is no such path, resource or subresource. */
export const unknownPath = (): StatusError =>
  failure(404, 'NotFound', 'the server could not find the requested resource', {});

/** 409: a POST met an object of that name. */
export const alreadyExists = (target: ResourceName, name: string): StatusError =>
  failure(
    409,
    'AlreadyExists',
    `${qualifiedResource(target)} ${quote(name)} already exists`,
    resourceDetails(target, name),
  );

/** 409: every name generated from generateName was in use. */
export const generateNameConflict = (target: ResourceName, name: string): StatusError =>
  failure(
    409,
    'AlreadyExists',
    `${qualifiedResource(target)} ${quote(name)} already exists, the server was not able to generate a unique name for the object`,
    { ...resourceDetails(target, name), retryAfterSeconds: 1 },
  );

export const OBJECT_MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again';

/** 409: the precondition (resourceVersion, uid) did not hold. `why` defaults to the object having been modified. */
export const conflict = (target: ResourceName, name: string, why: string = OBJECT_MODIFIED): StatusError =>
  failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualifiedResource(target)} ${quote(name)}: ${why}`,
    resourceDetails(target, name),
  );

/** 409: a server-side apply without force met fields of others; patch/apply.ts words it, one cause a field. */
export const applyConflict = (message: string, causes: readonly Cause[]): StatusError =>
  failure(409, 'Conflict', message, { causes });

/** One cause as a line: `spec.taints[0].effect: Required value`. */
export const causeText = (cause: Cause): string =>
  cause.field === undefined ? cause.message : `${cause.field}: ${cause.message}`;

const aggregate = (causes: readonly Cause[]): string => {
  const texts = [...new Set(causes.slice(0, CAUSES_MAX).map(causeText))];
  if (causes.length > CAUSES_MAX) texts.push(`and ${causes.length - CAUSES_MAX} more causes`);
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
};

/** 422: validation refused the object. `causes` come from the `validate` of each kind. */
export function invalid(target: KindName, name: string, causes: readonly Cause[]): StatusError {
  const head = `${qualifiedKind(target)} ${quote(name)} is invalid`;
  return failure(422, 'Invalid', causes.length === 0 ? head : `${head}: ${aggregate(causes)}`, {
    ...(name === '' ? {} : { name }),
    ...(target.group === '' ? {} : { group: target.group }),
    kind: target.kind,
    ...(causes.length === 0 ? {} : { causes }),
  });
}

/** 422 with a message only: a JSON patch with a failed test or an unknown path. */
export const unprocessable = (message: string): StatusError => failure(422, 'Invalid', message, {});

/** 400: the request cannot be understood. */
export const badRequest = (message: string): StatusError => failure(400, 'BadRequest', message);

export const unauthorized = (message = 'Unauthorized'): StatusError => failure(401, 'Unauthorized', message);

/** 403: `why` is what comes after "is forbidden: ". */
export function forbidden(target: ResourceName, name: string, why: string, causes?: readonly Cause[]): StatusError {
  const subject =
    target.resource === ''
      ? 'forbidden'
      : `${qualifiedResource(target)}${name === '' ? '' : ` ${quote(name)}`} is forbidden`;
  return failure(403, 'Forbidden', `${subject}: ${why}`, {
    ...resourceDetails(target, name),
    ...defined({ causes }),
  });
}

const REASON_CODES: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  RequestEntityTooLarge: 413,
};

/** A refusal by a policy of the cluster. @param reason as the policy says; others than REASON_CODES are 422 */
export function refusedByPolicy(target: ResourceName, name: string, why: string, reason: string): StatusError {
  const { status } = forbidden(target, name, why);
  return new StatusError({ ...status, reason, code: REASON_CODES[reason] ?? 422 });
}

/** 403 on a path that is no resource. */
export const pathDenied = (user: string, verb: string, path: string, why = ''): StatusError =>
  forbidden(
    { group: '', resource: '' },
    '',
    `User ${quote(user)} cannot ${verb} path ${quote(path)}${why === '' ? '' : `: ${why}`}`,
  );

/** Who wanted what, for the text an authorizer's refusal has. */
export interface DeniedRequest {
  readonly user: string;
  readonly verb: string;
  readonly target: ResourceName;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** 403 from authorization: `User "x" cannot list resource "nodes" in API group "" at the cluster scope`. */
export function accessDenied(request: DeniedRequest, why?: string): StatusError {
  const resource =
    request.subresource === undefined || request.subresource === ''
      ? request.target.resource
      : `${request.target.resource}/${request.subresource}`;
  const scope =
    request.namespace === undefined || request.namespace === ''
      ? 'at the cluster scope'
      : `in the namespace ${quote(request.namespace)}`;
  const text = `User ${quote(request.user)} cannot ${request.verb} resource ${quote(resource)} in API group ${quote(request.target.group)} ${scope}`;
  return forbidden(request.target, request.name ?? '', why === undefined || why === '' ? text : `${text}: ${why}`);
}

/** 406: the Accept header has no type that the server answers with. */
export const notAcceptable = (supported: readonly string[]): StatusError =>
  failure(406, 'NotAcceptable', `only the following media types are accepted: ${supported.join(', ')}`);

/** 410: the client must list again. */
export const expired = (message: string): StatusError => failure(410, 'Expired', message);

/** 410: a watch asked for changes older than the change log keeps. */
export const resourceVersionTooOld = (requested: string | number, oldest: string | number): StatusError =>
  expired(`too old resource version: ${requested} (${oldest})`);

/** 410: a list's continue token is older than the change log keeps. */
export const continueExpired = (): StatusError =>
  expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
  );

/** 504: the version asked for does not exist yet. Go clients recognise the reason of the cause. */
export function resourceVersionTooLarge(requested: string, current: string, retryAfterSeconds: number): StatusError {
  const message = `Too large resource version: ${requested}, current: ${current}`;
  return failure(504, 'Timeout', `Timeout: ${message}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds,
  });
}

/** 415 */
export const unsupportedMediaType = (accepted: readonly string[]): StatusError =>
  failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );

/** 405: the resource is known, the verb is not for it. */
export const methodNotAllowed = (target: ResourceName, verb: string): StatusError =>
  failure(
    405,
    'MethodNotAllowed',
    `${verb} is not supported on resources of kind ${quote(qualifiedResource(target))}`,
    resourceDetails(target, ''),
  );

/** 405 on a path without a resource. */
export const methodNotAllowedHere = (): StatusError =>
  failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

/** 405 with a sentence that says why, and what to use instead. */
export const notServed = (message: string): StatusError => failure(405, 'MethodNotAllowed', message, {});

/** 504: something behind this API did not respond in time. */
export const gatewayTimeout = (message: string): StatusError => failure(504, 'Timeout', message, {});

/**
 * 429. `retryAfterSeconds` also wants a Retry-After header from the edge, if the client shall retry by itself;
 * the Go client retries only with that header (kubectl drain then retries silently).
 */
export const tooManyRequests = (
  message: string,
  options: { readonly retryAfterSeconds?: number; readonly causes?: readonly Cause[] } = {},
): StatusError =>
  failure(429, 'TooManyRequests', message, {
    ...defined({ causes: options.causes, retryAfterSeconds: options.retryAfterSeconds }),
  });

/** 429 of an eviction that a budget does not allow now. `detail` says which budget and what it counts. */
export const disruptionBudgetExceeded = (detail: string): StatusError =>
  tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", {
    causes: [{ reason: 'DisruptionBudget', message: detail }],
  });

/** 413 */
export const requestEntityTooLarge = (message: string): StatusError =>
  failure(413, 'RequestEntityTooLarge', `Request entity too large: ${message}`);

/** 500. Say nothing here that a client must not read. */
export const internalError = (message: string, options?: { readonly cause?: unknown }): StatusError =>
  failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ reason: '', message }] }, options);

/** 503 */
export const serviceUnavailable = (
  message: string,
  options: { readonly retryAfterSeconds?: number; readonly cause?: unknown } = {},
): StatusError =>
  failure(
    503,
    'ServiceUnavailable',
    message,
    options.retryAfterSeconds === undefined ? undefined : { retryAfterSeconds: options.retryAfterSeconds },
    options,
  );

/** 500, reason ServerTimeout: the operation could not be completed in time and may be tried again. */
export const serverTimeout = (target: ResourceName, operation: string, retryAfterSeconds: number): StatusError =>
  failure(
    500,
    'ServerTimeout',
    `The ${operation} operation against ${qualifiedResource(target)} could not be completed at this time, please try again.`,
    { ...resourceDetails(target, ''), retryAfterSeconds },
  );

/** 400 of a POST or PUT: the body names another namespace than the URL. */
export const namespaceMismatch = (): StatusError =>
  badRequest('the namespace of the provided object does not match the namespace sent on the request');

/** 400 of a PUT: the body names another object than the URL. */
export const nameMismatch = (inBody: string, inUrl: string): StatusError =>
  badRequest(`the name of the object (${inBody}) does not match the name on the URL (${inUrl})`);

/** The message of upstream for a body of another kind than the path has. */
export const unknownConversion = (
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  expectedKind: string,
): string =>
  `${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${expectedKind}: converting (${kind}) to (${expectedKind}): unknown conversion`;
