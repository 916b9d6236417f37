/**
 * A heartbeat: PUT or PATCH of one Lease in kube-node-lease. It is one conditional update, without a read or a log
 * line. A relay sends several in one POST (lease-batch.ts). Failures are logged once per minute, so an unreachable
 * store does not cost a line per beat.
 *
 * A kubelet sends a PUT of the whole Lease with the resourceVersion that it last read. An agent sends a merge patch of
 * the spec. Both map to attributes of the row. A JSON patch, and a patch of labels and annotations, need the stored
 * Lease. This function may only call UpdateItem on the table. So it reads the row by an update with a condition that
 * always fails. That rare path costs two write units.
 *
 * A heartbeat may report machines of its site that are silent there: one more write (store-silent-machines.ts).
 *
 * Liveness is measured by our own clock at receipt (D1). The renewTime that a node writes is stored and not evaluated.
 */

import type { Authenticator } from '../../shared/access/authenticator.ts';
import { authorize, NODE_USER_PREFIX } from '../../shared/access/authorize.ts';
import { BODY_SHA256_EXTRA } from '../../shared/access/node-identity.ts';
import type { RequestThrottle, Visit } from '../../shared/access/request-throttle.ts';
import type { UserInfo } from '../../shared/access/user-info.ts';
import type { Clock, RandomSource, StartTimeLimit } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { COUNTERS, DIGEST } from '../../shared/fleet/nodes/health.ts';
import { HEARTBEAT_URL_ANNOTATION, HEARTBEAT_URL_HEADER } from '../../shared/fleet/nodes/heartbeat-url.ts';
import { isLeaseBatchPath, PREFER_NEWS } from '../../shared/fleet/nodes/lease-batch.ts';
import type { BeatTimes } from '../../shared/fleet/nodes/node-profile.ts';
import { USAGE_ANNOTATION } from '../../shared/fleet/nodes/node-usage.ts';
import { SILENT_MACHINES_ANNOTATION } from '../../shared/fleet/silent-machines.ts';
import { prepareLease } from '../../shared/kinds/leases/defaults.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import {
  beatAnnotations,
  type Lease,
  LOGS_VERSION_ANNOTATION,
  leaseMergePatch,
  leaseOf,
  PODS_VERSION_ANNOTATION,
  SERVICES_VERSION_ANNOTATION,
  VOLUMES_VERSION_ANNOTATION,
} from '../../shared/kinds/leases/lease-record.ts';
import { type LeaseWriteOutcome, renewLease } from '../../shared/kinds/leases/lease-store.ts';
import { LEASE_NAMESPACE, LEASES } from '../../shared/kinds/leases/resource.ts';
import { leaseMessages, leaseSchema } from '../../shared/kinds/leases/schema.ts';
import { validateLease, validateLeaseSpec } from '../../shared/kinds/leases/validate.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import {
  type HttpRequest,
  type HttpResponse,
  isStatusError,
  json,
  PROTOBUF_MEDIA_TYPE,
  statusResponse,
  warningHeaders,
} from '../../shared/kubernetes/http.ts';
import { isJsonObject, setMember } from '../../shared/kubernetes/json.ts';
import { NAME_LENGTH_MAX } from '../../shared/kubernetes/kubernetes.ts';
import {
  failedRequests,
  type NoteFault,
  type NoteRefusal,
  refusedSignIns,
} from '../../shared/kubernetes/log-throttle.ts';
import { patchTransform, refusedPatch } from '../../shared/kubernetes/patch/patch.ts';
import { dryRunOf, parsePath, type ResourceTarget } from '../../shared/kubernetes/request.ts';
import {
  decodeObject,
  fieldValidationOf,
  isPatchType,
  mediaTypeOf,
  PATCH_TYPES,
  readJson,
  readObjectBody,
  refuseOtherKind,
  refuseTooLarge,
} from '../../shared/kubernetes/request-body.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { resourceVersionRequired } from '../../shared/kubernetes/validate-metadata.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { Item, ItemUpdater } from '../../shared/store/item-store.ts';
import { type BatchContext, serveBatch } from './lease-batch.ts';
import { peekRow } from './peek-row.ts';
import { type RefusedItems, refusedItems } from './refused-items.ts';
import { storeSilentMachines } from './store-silent-machines.ts';

/**
 * Longest body of a heartbeat, also as an item of a batch. A kubelet's Lease has about 600 bytes, with managedFields
 * 1,000; more labels, annotations and owners than fit here are refused in any case (LEASE_EXTRAS_BYTES_MAX).
 */
const LEASE_BODY_BYTES_MAX = 8_192;
const WRITE_ATTEMPTS_MAX = 5;

export interface RenewLeaseDependencies {
  readonly items: ItemUpdater;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** Interval and duration of Leases by profile, for the answers. Absent: answers do not contain them. */
  readonly beatTimes?: BeatTimes;
  /** SHA-256 in base64url, for tokens that are bound to one request body. Absent: such tokens are refused. */
  readonly sha256?: (bytes: Uint8Array) => string;
  /** Absent: requests are not throttled. */
  readonly throttle?: RequestThrottle;
  /**
   * The throttle of batches. Anyone in a site can fill the batches of its relay, so they must not use up the requests
   * of the relay's own heartbeats. Absent: batches are not throttled.
   */
  readonly batchThrottle?: RequestThrottle;
  /** Absent: the answer to a batch waits for its slowest item. */
  readonly startTimeLimit?: StartTimeLimit;
}

type Serving = RenewLeaseDependencies & {
  readonly noteRefusal: NoteRefusal;
  readonly noteReportFault: NoteFault;
  readonly refusedItems: RefusedItems;
};
/** The account of one request. Undefined: requests are not throttled. */
type Account = Visit | undefined;

interface Beat {
  readonly request: HttpRequest;
  readonly target: ResourceTarget;
  readonly sender: UserInfo;
  readonly nowMs: number;
}

export function serveHeartbeat(options: RenewLeaseDependencies): (request: HttpRequest) => Promise<HttpResponse> {
  const dependencies = {
    ...options,
    noteRefusal: refusedSignIns(options.log),
    noteReportFault: failedRequests(options.log, 'a report of silent machines could not be stored'),
    refusedItems: refusedItems(),
  };
  const noteFault = failedRequests(options.log, 'heartbeat failed');
  const answered =
    (
      serve: (dependencies: Serving, request: HttpRequest, visit: Account) => Promise<HttpResponse>,
      begin: () => Account,
    ) =>
    async (request: HttpRequest): Promise<HttpResponse> => {
      const visit = begin();
      try {
        return await serve(dependencies, request, visit);
      } catch (error) {
        if (isStatusError(error)) return statusResponse(error.status);
        noteFault(error, { path: request.path }, options.clock.nowMs());
        return statusResponse(
          status.serviceUnavailable('the heartbeat could not be stored', { retryAfterSeconds: 1 }).status,
        );
      } finally {
        await visit?.end(options.clock.nowMs());
      }
    };
  const { throttle, batchThrottle, clock } = options;
  const beat = answered(answer, () => throttle?.begin(clock.nowMs()));
  // Items are served concurrently: what one of them computes is not known. Their batch pays.
  const item = answered(answer, () => throttle?.begin(clock.nowMs(), false));
  const batch = answered(
    (serving, request, visit) => answerBatch(serving, request, { visit, beat: item }),
    () => batchThrottle?.begin(clock.nowMs()),
  );
  return (request) => (request.method === 'POST' && isLeaseBatchPath(request.path) ? batch(request) : beat(request));
}

const LEASE_BATCHES = { group: 'nodekeeper.dev', resource: 'leasebatches' } as const;

/** The sender proves only that it may send batches. Each item has the token of its machine. */
async function answerBatch(
  dependencies: Serving,
  request: HttpRequest,
  { visit, beat }: { readonly visit: Account; readonly beat: BatchContext['beat'] },
): Promise<HttpResponse> {
  const { clock, startTimeLimit } = dependencies;
  const target = { ...LEASE_BATCHES, version: 'v1alpha1', namespace: '', name: '', subresource: '' };
  const arrivedAtMs = clock.nowMs();
  const { username } = await admit(dependencies, request, { verb: 'create', target, nowMs: arrivedAtMs, visit });
  const heartbeatUrl = heartbeatUrlOf(request);
  const annotations = heartbeatUrl === undefined ? {} : { [HEARTBEAT_URL_ANNOTATION]: heartbeatUrl };
  const times = { arrivedAtMs, nowMs: () => clock.nowMs(), ...defined({ startTimeLimit }) };
  const { refusedItems: refused } = dependencies;
  return serveBatch(request, {
    ...times,
    beat,
    annotations,
    mayCheck: () => refused.mayCheck(username, arrivedAtMs),
    onRefused: () => refused.note(username, arrivedAtMs),
    onRenewed: (nodes) => visit?.carries(nodes),
  });
}

/** The URL of this function, which the HTTP API adds to each request. */
const heartbeatUrlOf = ({ headers }: HttpRequest): string | undefined =>
  headers[HEARTBEAT_URL_HEADER]?.replace(/\/$/, '');

interface Admission {
  readonly verb: string;
  readonly target: ResourceTarget;
  readonly nowMs: number;
  readonly visit: Account;
}

/** @throws StatusError 401, 403 or 429 unless the sender may do this now */
async function admit(
  dependencies: Serving,
  request: HttpRequest,
  { verb, target, nowMs, visit }: Admission,
): Promise<UserInfo> {
  const authentication = await dependencies.authenticator.authenticate(request.headers, nowMs);
  if (authentication.kind === 'refused') dependencies.noteRefusal(authentication.reason, request.sourceIp, nowMs);
  if (authentication.kind !== 'authenticated') throw status.unauthorized();
  const { user } = authentication;
  const bodySha256 = user.extra?.[BODY_SHA256_EXTRA]?.[0];
  if (bodySha256 !== undefined && dependencies.sha256?.(request.body) !== bodySha256) {
    dependencies.noteRefusal('node token: for another request body', request.sourceIp, nowMs);
    throw status.unauthorized();
  }
  visit?.admit(user);
  refuseImpersonation(request, user);
  const access = authorize(user, { verb, ...target });
  if (access.allowed) return user;
  throw status.accessDenied({ user: user.username, verb, target, ...namespaceAndName(target) }, access.reason);
}

async function answer(dependencies: Serving, request: HttpRequest, visit: Account): Promise<HttpResponse> {
  const nowMs = dependencies.clock.nowMs();
  const parsed = parsePath(request.path);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.reason);
  const verb = request.method === 'PUT' ? 'update' : 'patch';
  if (
    parsed.kind !== 'resource' ||
    parsed.target.resource !== LEASES.resource ||
    parsed.target.group !== LEASES.group ||
    parsed.target.namespace !== LEASE_NAMESPACE ||
    parsed.target.name === '' ||
    parsed.target.subresource !== ''
  ) {
    throw status.unknownPath();
  }
  const { target } = parsed;
  const sender = await admit(dependencies, request, { verb, target, nowMs, visit });
  // The name may be longer than a key of the store.
  if (target.name.length > NAME_LENGTH_MAX) throw status.notFound(LEASES, target.name);
  // Before it is parsed: a small function serves all heartbeats.
  refuseTooLarge(request.body, LEASE_BODY_BYTES_MAX);
  const beat = { request, target, sender, nowMs };
  return verb === 'update' ? put(dependencies, beat) : patch(dependencies, beat);
}

/** A renewal reads no roles, so it cannot check whether the user may impersonate another one. */
function refuseImpersonation({ headers }: HttpRequest, { username }: UserInfo): void {
  const impersonated = headers['impersonate-user'] ?? headers['impersonate-group'] ?? headers['impersonate-uid'];
  if (impersonated === undefined) return;
  const why = `User ${status.quote(username)} cannot impersonate resource "users" in API group "" at the cluster scope`;
  throw status.forbidden({ group: '', resource: 'users' }, impersonated, why);
}

const namespaceAndName = ({ namespace, name }: ResourceTarget) => ({ namespace, name });

/**
 * The resourceVersion that a client sends back; -1, which matches no stored version, for a malformed one. "0" means no
 * version, as for every kind (write-options.ts).
 */
function versionOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '' || text === '0') return undefined;
  return /^\d{1,16}$/.test(text) ? Number(text) : -1;
}

function refuseInvalid(causes: readonly status.Cause[], name: string): void {
  if (causes.length > 0) throw status.invalid(LEASES, name, causes);
}

interface Answered {
  readonly beat: Beat;
  readonly warnings: readonly string[];
  readonly beatTimes: BeatTimes | undefined;
}

function answerOf(outcome: LeaseWriteOutcome, { beat, warnings, beatTimes }: Answered): HttpResponse {
  const { request, target } = beat;
  if (outcome.kind === 'absent') throw status.notFound(LEASES, target.name);
  if (outcome.kind === 'conflict') throw status.conflict(LEASES, target.name);
  const lease = leaseForResponse(outcome.row, { beatTimes, heartbeatUrl: heartbeatUrlOf(request) });
  const { prefer } = request.headers;
  if (prefer === PREFER_NEWS && lease !== undefined) return json(200, news(lease));
  const isMinimal = prefer === MINIMAL;
  return isMinimal && lease !== undefined
    ? json(200, minimal(lease), { ...warningHeaders(warnings), 'preference-applied': MINIMAL })
    : json(200, lease, warningHeaders(warnings));
}

/**
 * The Lease, with annotations for the agent: versions of its node's pods, volumes, Services and logs, the times of its
 * profile, and the URL of this function. Without the usage: the agent sends it with each heartbeat, and its bytes in
 * each answer would cost more than all reads of ticks.
 */
function leaseForResponse(
  row: Item,
  { beatTimes, heartbeatUrl }: Pick<Answered, 'beatTimes'> & { readonly heartbeatUrl: string | undefined },
): Lease | undefined {
  const lease = leaseOf(row);
  if (lease === undefined) return undefined;
  const podsVersion = COUNTERS.podsVersion.of(row);
  const logsVersion = COUNTERS.logsVersion.of(row);
  const volumesVersion = COUNTERS.volumesVersion.of(row);
  const servicesVersion = COUNTERS.servicesVersion.of(row);
  const { annotations: { [USAGE_ANNOTATION]: _usage, ...stored } = {}, ...metadata } = lease.metadata;
  const annotations = {
    ...stored,
    ...beatAnnotations(beatTimes, DIGEST.profile.of(row)),
    ...(podsVersion === undefined ? {} : { [PODS_VERSION_ANNOTATION]: String(podsVersion) }),
    ...(logsVersion === undefined ? {} : { [LOGS_VERSION_ANNOTATION]: String(logsVersion) }),
    ...(volumesVersion === undefined ? {} : { [VOLUMES_VERSION_ANNOTATION]: String(volumesVersion) }),
    ...(servicesVersion === undefined ? {} : { [SERVICES_VERSION_ANNOTATION]: String(servicesVersion) }),
    ...(heartbeatUrl === undefined ? {} : { [HEARTBEAT_URL_ANNOTATION]: heartbeatUrl }),
  };
  return { ...lease, metadata: Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations } };
}

/** RFC 7240. Agents send it: half of an answer's bytes are what they sent, and data out to the internet is billed. */
const MINIMAL = 'return=minimal';

/** What the sender does not know: the version and the annotations. */
const minimal = ({ apiVersion, kind, metadata: { name, namespace, resourceVersion, annotations } }: Lease) => ({
  apiVersion,
  kind,
  metadata: { name, namespace, resourceVersion, ...defined({ annotations }) },
});

/** The same for an item of a batch: type and name are those of the item. */
const news = ({ metadata: { resourceVersion, annotations } }: Lease) => ({
  metadata: { resourceVersion, ...defined({ annotations }) },
});

/** No client renews a Lease in YAML, and its parser would add to each cold start. */
const ACCEPTED = ['application/json', PROTOBUF_MEDIA_TYPE];
const LEASE_BODY = {
  messages: async () => leaseMessages,
  expected: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
  accepted: ACCEPTED,
};

/** The answer, after a report of silent machines in `renewed` is stored. Only a machine itself may report. */
async function answerAfterReport(
  dependencies: Serving,
  outcome: LeaseWriteOutcome,
  renewed: KubeObject,
  { beat, warnings }: Pick<Answered, 'beat' | 'warnings'>,
): Promise<HttpResponse> {
  const { target, sender, nowMs } = beat;
  const text = renewed.metadata.annotations?.[SILENT_MACHINES_ANNOTATION];
  if (text !== undefined && outcome.kind === 'written' && sender.username === NODE_USER_PREFIX + target.name) {
    await storeSilentMachines(dependencies, { reporter: target.name, text, nowMs });
  }
  return answerOf(outcome, { beat, warnings, beatTimes: dependencies.beatTimes });
}

async function put(dependencies: Serving, beat: Beat): Promise<HttpResponse> {
  const { request, target, nowMs } = beat;
  const read = await readObjectBody(request.headers, request.body, LEASE_BODY);
  const { object, warnings } = decodeObject(
    LEASES,
    leaseSchema,
    read,
    fieldValidationOf(request.query, 'UpdateOptions'),
  );
  refuseOtherKind(LEASES.kind, object);
  const { metadata } = object;
  if ((metadata.name ?? '') !== '' && metadata.name !== target.name)
    throw status.nameMismatch(metadata.name ?? '', target.name);
  if ((metadata.namespace ?? '') !== '' && metadata.namespace !== target.namespace) throw status.namespaceMismatch();
  const version = versionOf(metadata.resourceVersion);
  if (version === undefined) {
    throw status.invalid(LEASES, target.name, [resourceVersionRequired]);
  }
  const lease: KubeObject = { ...object, metadata: { ...metadata, name: target.name, namespace: target.namespace } };
  refuseInvalid(validateLease(lease, undefined), target.name);
  const change = leaseChangeOf(lease);
  if (dryRunOf(request.query, 'UpdateOptions')) return dryRun(dependencies, target.name, version, lease);
  const outcome = await renewLease(dependencies.items, {
    change,
    nowMs,
    tie: dependencies.random.fraction(),
    expectedResourceVersion: version,
    ...(metadata.uid === undefined || metadata.uid === '' ? {} : { expectedUid: metadata.uid }),
  });
  return answerAfterReport(dependencies, outcome, lease, { beat, warnings });
}

async function dryRun(
  dependencies: RenewLeaseDependencies,
  name: string,
  version: number | undefined,
  next: KubeObject,
): Promise<HttpResponse> {
  const row = await peekRow(dependencies.items, name);
  const stored = row === undefined ? undefined : leaseOf(row);
  if (stored === undefined) throw status.notFound(LEASES, name);
  if (version !== undefined && stored.metadata.resourceVersion !== String(version)) throw status.conflict(LEASES, name);
  return json(200, prepareLease.prepareForUpdate(next, stored, { subresource: '', nowMs: 0 }));
}

async function patch(dependencies: Serving, beat: Beat): Promise<HttpResponse> {
  const { request, target, nowMs } = beat;
  const type = mediaTypeOf(request.headers);
  if (!isPatchType(type) || type === 'application/apply-patch+yaml') throw status.unsupportedMediaType(PATCH_TYPES);
  if (type === 'application/json-patch+json' || dryRunOf(request.query, 'PatchOptions'))
    return patchRead(dependencies, beat, type);
  const body = readJson(request.body).anyValue;
  if (!isJsonObject(body)) throw status.badRequest('a patch must be a JSON object');
  // Only the members that the patch sets are validated: the stored ones are valid already.
  const read = { value: withoutNulls(body), duplicates: [] };
  const { object } = decodeObject(LEASES, leaseSchema, read, 'Ignore', (fault) => refusedPatch(body, fault));
  const isValid = validateLeaseSpec(object.spec ?? {}).length === 0;
  const change = isValid ? leaseMergePatch(target.name, body) : undefined;
  if (change?.kind !== 'change') {
    const { name, namespace } = target;
    refuseInvalid(validateLease({ ...object, metadata: { ...object.metadata, name, namespace } }, undefined), name);
    return patchRead(dependencies, beat, type);
  }
  const version = versionOf(object.metadata.resourceVersion);
  if (version === undefined && object.metadata.resourceVersion !== undefined) {
    throw status.invalid(LEASES, target.name, [resourceVersionRequired]);
  }
  const outcome = await renewLease(dependencies.items, {
    change: change.change,
    nowMs,
    tie: dependencies.random.fraction(),
    ...defined({ expectedResourceVersion: version, expectedUid: object.metadata.uid }),
  });
  return answerOf(outcome, { beat, warnings: [], beatTimes: dependencies.beatTimes });
}

/** The rare path: reads the stored Lease, applies the patch, and replaces it if its version is unchanged. */
async function patchRead(
  dependencies: Serving,
  beat: Beat,
  type: Parameters<typeof patchTransform>[2],
): Promise<HttpResponse> {
  const { request, target, nowMs } = beat;
  const { transform, warnings } = patchTransform(
    LEASES,
    leaseSchema,
    type,
    request.body,
    fieldValidationOf(request.query, 'PatchOptions'),
  );
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    const row = await peekRow(dependencies.items, target.name);
    const stored = row === undefined ? undefined : leaseOf(row);
    if (stored === undefined) throw status.notFound(LEASES, target.name);
    const patched = await transform(stored);
    const expected = versionOf(patched.metadata.resourceVersion);
    if (expected === undefined) throw status.invalid(LEASES, target.name, [resourceVersionRequired]);
    if (String(expected) !== stored.metadata.resourceVersion) throw status.conflict(LEASES, target.name);
    const next = prepareLease.prepareForUpdate(patched, stored, { subresource: '', nowMs });
    const causes = validateLease(next, stored);
    if (causes.length > 0) throw status.invalid(LEASES, target.name, causes);
    if (dryRunOf(request.query, 'PatchOptions')) return json(200, next, warningHeaders(warnings()));
    const version = Number(stored.metadata.resourceVersion);
    const outcome = await renewLease(dependencies.items, {
      change: leaseChangeOf(next),
      nowMs,
      tie: dependencies.random.fraction(),
      expectedResourceVersion: version,
    });
    if (outcome.kind !== 'conflict') {
      return answerAfterReport(dependencies, outcome, next, { beat, warnings: warnings() });
    }
  }
  throw status.conflict(LEASES, target.name);
}

/** A merge patch without the members that it removes: those have no type to validate. */
function withoutNulls(patchBody: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [member, value] of Object.entries(patchBody)) {
    if (value === null) continue;
    setMember(kept, member, isJsonObject(value) ? withoutNulls(value) : value);
  }
  return kept;
}
