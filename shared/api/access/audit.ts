/**
 * Who changed what, when, from where, and how it ended: a line for every write that is not a machine's own, refusals
 * included. Machines report on themselves all day; what they may touch is bounded by NodeRestriction.
 *
 * The line is written before the answer is given. Where it cannot be kept the answer is given all the same (a cluster
 * that cannot be mended because its audit log fails is worse), and the line goes to the function's own log as an error.
 */
import { SIMULATED_FLEET_GROUP } from '../../domain/access/access-entry.ts';
import { NODES_GROUP } from '../../domain/access/node-restriction.ts';
import { PROBE_GROUP } from '../../domain/access/probe-identity.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import type { Verb } from '../../kube/descriptor.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { formatTime } from '../../kube/time.ts';
import type { AuditLine, AuditTrail } from '../../ports/audit-trail.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { Log } from '../../ports/log.ts';

/** What is known of a request once it was signed in and read. */
export interface Act {
  readonly user: UserInfo;
  readonly verb: Verb;
  readonly target: ResourceTarget;
  readonly nowMs: number;
}

const READING: ReadonlySet<Verb> = new Set(['get', 'list', 'watch']);
/** The last is local mode's: one token that plays all its machines. Access entries cannot give it. */
const MACHINES = new Set([NODES_GROUP, PROBE_GROUP, SIMULATED_FLEET_GROUP]);
/** Asking what one may do changes nothing. */
const REVIEWS = new Set(['selfsubjectaccessreviews', 'selfsubjectrulesreviews', 'selfsubjectreviews']);
/** Of what a client says of itself. Characters. */
const USER_AGENT_MAX = 200;

const isAudited = ({ user, verb, target }: Act): boolean =>
  !READING.has(verb) && !REVIEWS.has(target.resource) && !user.groups.some((group) => MACHINES.has(group));

function lineOf({ user, verb, target, nowMs }: Act, request: HttpRequest, response: HttpResponse): AuditLine {
  const { group, resource, subresource, namespace } = target;
  const name = target.name === '' && response.status === 201 ? createdName(response) : target.name;
  return {
    time: formatTime(nowMs),
    user: user.username,
    groups: user.groups,
    ...(user.extra === undefined ? {} : { extra: user.extra }),
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

/** A create names its object in the body, or lets us name it. */
function createdName({ body }: HttpResponse): string {
  if (typeof body !== 'string') return '';
  try {
    const { metadata } = JSON.parse(body) as { metadata?: { name?: unknown } };
    return typeof metadata?.name === 'string' ? metadata.name : '';
  } catch {
    return '';
  }
}

/** Never rejects. */
export async function audit(
  { auditTrail, log }: { readonly auditTrail?: AuditTrail; readonly log: Log },
  act: Act | undefined,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  if (auditTrail === undefined || act === undefined || !isAudited(act)) return;
  const line = lineOf(act, request, response);
  try {
    await auditTrail.record(line);
  } catch (error) {
    log.error('an act could not be written to the audit log', { ...line, error });
  }
}
