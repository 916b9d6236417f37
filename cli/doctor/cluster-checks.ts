/**
 * What the cluster itself answers: endpoint, sign-in, clocks, heartbeats, ticks, safety gate. Reads only, except one
 * patch of a Lease that does not exist.
 */
import { CALLER_IDENTITY_PREFIX } from '../../shared/domain/access/caller-identity-token.ts';
import { PROBE_LEASE } from '../../shared/domain/access/probe-identity.ts';
import { formatAge } from '../../shared/kube/age.ts';
import { formatTime, parseTimeMs } from '../../shared/kube/time.ts';
import { CommandError } from '../command.ts';
import type { ApiAccess } from '../kubeconfig.ts';
import { type Finding, fail, notApplicable, ok, warn } from './check.ts';
import { type Exchange, type ExchangeRequest, exchange } from './exchange.ts';

export interface ClusterContext {
  readonly access: ApiAccess;
  /** The clock of this machine. Epoch milliseconds. */
  readonly clockMs: () => number;
}

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** A Lease of no node: a patch of it changes nothing. */
const MISSING_LEASE = 'nodekeeper-doctor';
const DECISIONS = '/apis/nodekeeper.dev/v1alpha1/decisions';
const PAGE_ITEMS = 500;
const PAGES_MAX = 20;
/** ACM renews a certificate 60 days before it expires (ACM User Guide, "Managed certificate renewal"). Days. */
const CERTIFICATE_DAYS_WARN = 14;
const CERTIFICATE_DAYS_FAIL = 2;
const DAY_MS = 86_400_000;
const SKEW_WARN_MS = 5_000;
/** STS accepts a signature of up to 5 minutes in the future or 15 minutes in the past; tokens of nodes less. */
const SKEW_FAIL_MS = 60_000;
/** Half of the default grace period: the safety gate closes about then. */
const TICK_WARN_MS = 20_000;
/** As the alarm node-monitor-ticks. */
const TICK_FAIL_MS = 60_000;

const request = ({ access }: ClusterContext, path: string, more: Partial<ExchangeRequest> = {}): Promise<Exchange> =>
  exchange({
    method: 'GET',
    ca: access.ca,
    token: access.token,
    ...more,
    url: `${access.url.replace(/\/$/, '')}${path}`,
  });

export interface Endpoint {
  readonly finding: Finding;
  /** undefined: no response, or not from Nodekeeper. No token is sent to it. */
  readonly response?: Exchange;
}

/** DNS, TLS and /version. The other checks depend on it. */
export async function checkEndpoint(context: ClusterContext): Promise<Endpoint> {
  let response: Exchange;
  try {
    response = await request(context, '/version', { token: undefined });
  } catch (error) {
    if (error instanceof CommandError) return { finding: fail(error.message, error.next) };
    throw error;
  }
  const { gitVersion } = (response.object ?? {}) as { gitVersion?: unknown };
  if (response.status === 200 && typeof gitVersion === 'string' && gitVersion.includes('nodekeeper')) {
    return { finding: endpointFinding(context, gitVersion, response), response };
  }
  const what = typeof gitVersion === 'string' ? `version ${gitVersion}` : `HTTP status ${response.status}`;
  return {
    finding: fail(
      `${context.access.url}/version is not that of Nodekeeper: ${what}`,
      'check the server of the kubeconfig against output Endpoint of the stack',
    ),
  };
}

function endpointFinding({ access, clockMs }: ClusterContext, version: string, { durationMs, tls }: Exchange): Finding {
  const measured = `${access.url}: ${version}, ${Math.round(durationMs)} ms with a new connection`;
  if (tls === undefined) {
    return warn(`${measured}, without TLS`, 'use https: kubectl sends no token over plain HTTP');
  }
  const days = Math.floor((tls.certificateValidToMs - clockMs()) / DAY_MS);
  const withTls = `${measured}, ${tls.version}, certificate valid for ${days} days`;
  const next = 'renew the certificate of the domain in ACM, and check its DNS validation record';
  if (days < CERTIFICATE_DAYS_FAIL) return fail(withTls, next);
  return days < CERTIFICATE_DAYS_WARN ? warn(withTls, next) : ok(withTls);
}

/** Who the credential is, and whether it may list nodes. */
export async function checkSignIn(context: ClusterContext): Promise<Finding> {
  const review = await request(context, '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    method: 'POST',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  });
  if (review.status === 401) {
    return fail(
      'the server rejects the credential: 401 Unauthorized',
      'the token is revoked or expired, or accessEntriesFile does not list your IAM role; sign in again',
    );
  }
  const { status = {} } = (review.object ?? {}) as { status?: { userInfo?: { username?: string; groups?: string[] } } };
  const { username, groups = [] } = status.userInfo ?? {};
  if (review.status >= 300 || username === undefined) return unexpected('the review of the user', review);
  const who = `${username} (${groups.join(', ')})`;
  const nodes = await request(context, '/api/v1/nodes?limit=1');
  if (nodes.status === 403) {
    return fail(`${who} may not list nodes`, 'add nodekeeper:viewers or nodekeeper:admins to its access entry');
  }
  return nodes.status === 200 ? ok(`${who} may list nodes`) : unexpected('the list of nodes', nodes);
}

const messageOf = ({ object, status }: Exchange): string => {
  const { message } = (object ?? {}) as { message?: unknown };
  return typeof message === 'string' ? `${status}, ${message}` : String(status);
};

const unexpected = (what: string, response: Exchange): Finding =>
  fail(
    `${what} failed: HTTP status ${messageOf(response)}`,
    response.status === 429
      ? 'raise requestsPerSecondMax or the throttle quota of API Gateway (docs/operations/quotas.md)'
      : 'read the logs of function api',
  );

/** The Date header has whole seconds: the time is within the second that follows. */
const midSecondMs = (dateMs: number): number => dateMs + 500;

/** This machine against the server, and the server against an AWS API. */
export function clockFinding(
  response: Pick<Exchange, 'dateMs' | 'durationMs'>,
  at: { readonly receivedAtMs: number; readonly awsDateMs: number | undefined },
): Finding {
  if (response.dateMs === undefined) {
    return fail('the server sends no Date header', 'check which proxy or server answers at the endpoint');
  }
  const serverMs = midSecondMs(response.dateMs);
  const skewMs = at.receivedAtMs - response.durationMs / 2 - serverMs;
  const own = `this machine is ${secondsText(Math.abs(skewMs))} ${skewMs < 0 ? 'behind' : 'ahead of'} the server`;
  const awsSkewMs = at.awsDateMs === undefined ? 0 : serverMs - midSecondMs(at.awsDateMs);
  const beside =
    at.awsDateMs === undefined
      ? ''
      : `, the server is ${secondsText(Math.abs(awsSkewMs))} ${awsSkewMs < 0 ? 'behind' : 'ahead of'} AWS`;
  const measured = `${own}${beside}`;
  if (Math.abs(awsSkewMs) > SKEW_FAIL_MS) {
    return fail(measured, 'check which proxy answers at the endpoint; API Gateway has the time of AWS');
  }
  const next = 'set the clock of this machine by NTP (chronyc makestep): signed tokens with a wrong time are rejected';
  if (Math.abs(skewMs) > SKEW_FAIL_MS) return fail(measured, next);
  return Math.abs(skewMs) > SKEW_WARN_MS ? warn(measured, next) : ok(measured);
}

const secondsText = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`;

/**
 * A heartbeat through the public endpoint, for a Lease that does not exist. API Gateway routes it to the function
 * heartbeat, as every renewal. That function accepts keys of machines and static tokens; it rejects AWS identities.
 */
export async function checkHeartbeat(context: ClusterContext): Promise<Finding> {
  const response = await request(context, `${LEASES}/${MISSING_LEASE}`, {
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    body: { spec: { renewTime: `${new Date(context.clockMs()).toISOString().slice(0, -1)}000Z` } },
  });
  const { kind } = (response.object ?? {}) as { kind?: unknown };
  const answered = `a heartbeat for Lease ${MISSING_LEASE} was answered ${response.status} in ${Math.round(response.durationMs)} ms`;
  if (kind === 'Status' && response.status === 404) return ok(`${answered}: no such Lease`);
  if (kind === 'Status' && response.status === 401) {
    return isAwsIdentity(context.access)
      ? ok(`${answered}: the function accepts keys of machines only, and this is an AWS identity`)
      : fail(`${answered}: the credential is rejected`, 'sign in with another credential');
  }
  if (response.status === 429) {
    return fail(`${answered}: API Gateway throttles`, 'raise requestsPerSecondMax (docs/operations/quotas.md)');
  }
  return fail(
    `${answered}, expected 404: ${messageOf(response)}`,
    'read the logs of function heartbeat and docs/operations/alarms/heartbeats-failing.md',
  );
}

const isAwsIdentity = ({ token }: ApiAccess): boolean => token.startsWith(CALLER_IDENTITY_PREFIX);

/**
 * The age of the last tick of node-monitor. Every tick first sends a probe heartbeat through the public endpoint, so the
 * Lease of the probes has the time of the last tick with a stored heartbeat. Both must work.
 */
export async function checkTicks(context: ClusterContext): Promise<Finding> {
  const response = await request(context, `${LEASES}/${PROBE_LEASE}`);
  if (response.status === 404) {
    return fail(
      'node-monitor has never ticked: its probes have no Lease',
      'read the logs of function node-monitor; with ingestGate: off in the policy no probe is sent, see check metrics',
    );
  }
  const { spec = {} } = (response.object ?? {}) as { spec?: { renewTime?: string } };
  const renewedAtMs = parseTimeMs(spec.renewTime);
  if (response.status !== 200 || renewedAtMs === undefined) {
    return response.status === 401 || response.status === 403
      ? notApplicable(`the credential may not read the Lease of the probes: ${messageOf(response)}`)
      : unexpected('the Lease of the probes', response);
  }
  const serverMs = response.dateMs === undefined ? context.clockMs() : midSecondMs(response.dateMs);
  const ageMs = Math.max(0, serverMs - renewedAtMs);
  const measured = `the last tick of node-monitor with an accepted probe heartbeat began ${formatAge(ageMs)} ago`;
  const next = 'read docs/operations/alarms/node-monitor-ticks.md and heartbeats-failing.md';
  if (ageMs > TICK_FAIL_MS) return fail(`${measured}: no node failure is detected`, next);
  return ageMs > TICK_WARN_MS ? warn(measured, next) : ok(measured);
}

interface FleetDecisions {
  readonly items: readonly {
    readonly spec: { readonly act: string; readonly atMs: number; readonly reason: string };
  }[];
  readonly metadata?: { readonly continue?: string };
}

/** The safety gate, by the last decision about it. Decisions are kept for 30 days. */
export async function checkGate(context: ClusterContext): Promise<Finding> {
  let last: FleetDecisions['items'][number]['spec'] | undefined;
  let after = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ fieldSelector: 'about.kind=Fleet', limit: String(PAGE_ITEMS) });
    if (after !== '') query.set('continue', after);
    const response = await request(context, `${DECISIONS}?${query}`);
    if (response.status === 401 || response.status === 403) {
      return notApplicable(`the credential may not list decisions: ${messageOf(response)}`);
    }
    if (response.status !== 200) return unexpected('the list of decisions', response);
    const { items = [], metadata } = (response.object ?? {}) as Partial<FleetDecisions>;
    for (const { spec } of items) {
      if (/^Gate(Closed|Opened)$/.test(spec.act) && spec.atMs >= (last?.atMs ?? 0)) last = spec;
    }
    after = metadata?.continue ?? '';
    if (after === '') return gateFinding(last);
  }
  return warn(`more than ${PAGES_MAX * PAGE_ITEMS} decisions about the fleet in 30 days`, 'read the dashboard instead');
}

function gateFinding(last: FleetDecisions['items'][number]['spec'] | undefined): Finding {
  if (last === undefined) return ok('open: no transition in 30 days');
  if (last.act === 'GateOpened') return ok(`open since ${formatTime(last.atMs)}`);
  return fail(
    `closed since ${formatTime(last.atMs)}: ${last.reason}`,
    'read docs/operations/alarms/evictions-held.md; nodes are not marked and pods are not evicted until it opens',
  );
}
