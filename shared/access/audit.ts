/**
 * The audit log: one line per write by a person, refusals included. It has user, verb, object, time, source and code.
 * Writes by machines are left out. There are very many, and NodeRestriction bounds them.
 *
 * The line is written before the response is sent. When that fails, the response is sent all the same and the line is
 * logged as an error. Otherwise a failure of the audit log would prevent the repair of a cluster.
 */

import { defined } from '../defined.ts';
import type { Verb } from '../kinds/stored-resource.ts';
import type { HttpRequest, HttpResponse } from '../kubernetes/http.ts';
import type { ResourceTarget } from '../kubernetes/request.ts';
import { formatTime } from '../kubernetes/time.ts';
import type { Log } from '../observability/log.ts';
import { SIMULATED_FLEET_GROUP } from './access-entry.ts';
import { NODES_GROUP } from './authorize.ts';
import { PROBE_GROUP } from './probe-identity.ts';
import type { UserInfo } from './user-info.ts';

/** An authenticated request with a valid path. */
export interface AuditedCall {
  /** Who authenticated. */
  readonly user: UserInfo;
  /** The user that the request acts as: the same object, or an impersonated user. */
  readonly actingAs: UserInfo;
  readonly verb: Verb;
  readonly target: ResourceTarget;
  readonly nowMs: number;
}

const READ_VERBS: ReadonlySet<Verb> = new Set(['get', 'list', 'watch']);
/**
 * Groups of machines. In local mode all machines use one token of SIMULATED_FLEET_GROUP; no access entry and no
 * certificate of our own authority grants it.
 */
const MACHINE_GROUPS = new Set([NODES_GROUP, PROBE_GROUP, SIMULATED_FLEET_GROUP]);
/** Creations of these change nothing: a user asks for its own permissions. */
const SELF_REVIEWS = new Set(['selfsubjectaccessreviews', 'selfsubjectrulesreviews', 'selfsubjectreviews']);
/** Length of the user agent in a line. Characters. */
const USER_AGENT_MAX = 200;

const isAudited = ({ user, verb, target }: AuditedCall): boolean =>
  !READ_VERBS.has(verb) &&
  !SELF_REVIEWS.has(target.resource) &&
  !user.groups.some((group) => MACHINE_GROUPS.has(group));

function lineOf(
  { user, actingAs, verb, target, nowMs }: AuditedCall,
  request: HttpRequest,
  response: HttpResponse,
): AuditLine {
  const { group, resource, subresource, namespace } = target;
  const name = target.name === '' && response.status === 201 ? createdName(response) : target.name;
  return {
    time: formatTime(nowMs),
    user: user.username,
    groups: user.groups,
    ...defined({ extra: user.extra }),
    ...defined({ impersonatedUser: actingAs === user ? undefined : impersonated(actingAs) }),
    verb,
    group,
    resource,
    ...(subresource === '' ? {} : { subresource }),
    ...(namespace === '' ? {} : { namespace }),
    ...(name === '' ? {} : { name }),
    ...(request.query.has('dryRun') ? { dryRun: true } : {}),
    sourceIp: request.sourceIp,
    userAgent: (request.headers['user-agent'] ?? '').slice(0, USER_AGENT_MAX),
    code: response.status,
  };
}

const impersonated = ({ username, groups }: UserInfo) => ({ username, groups });

/** The path of a creation has no name, so it comes from the response. */
function createdName({ body }: HttpResponse): string {
  if (typeof body !== 'string') return '';
  try {
    const { metadata } = JSON.parse(body) as { metadata?: { name?: unknown } };
    return typeof metadata?.name === 'string' ? metadata.name : '';
  } catch {
    return '';
  }
}

/** Writes the line of a request. Never rejects: a failure is logged with the line. */
export async function audit(
  { auditTrail, log }: { readonly auditTrail?: AuditTrail; readonly log: Log },
  call: AuditedCall | undefined,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  if (auditTrail === undefined || call === undefined || !isAudited(call)) return;
  const line = lineOf(call, request, response);
  try {
    await auditTrail.record(line);
  } catch (error) {
    log.error('a request could not be written to the audit log', { ...line, error });
  }
}

/** One request of a user that changes the cluster, allowed or refused. Without bodies, which may contain secrets. */
export interface AuditLine {
  /** RFC 3339, server time. */
  readonly time: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** More data from the authentication, such as the IAM ARN. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  /** The user that the request acted as, if not the one that authenticated. */
  readonly impersonatedUser?: { readonly username: string; readonly groups: readonly string[] };
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
  readonly sourceIp: string;
  readonly userAgent: string;
  /** HTTP status of the response. */
  readonly code: number;
}

/** Stores audit records. @throws if a record could not be stored */
export interface AuditTrail {
  record(line: AuditLine): Promise<void>;
}
