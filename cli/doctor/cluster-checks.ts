/**
 * What the cluster itself answers: endpoint, sign-in, clocks, heartbeats, ticks, safety gate. Reads only, except one
 * patch of a Lease that does not exist.
 */
import { CALLER_IDENTITY_PREFIX } from '../../shared/access/caller-identity-token.ts';
import { PROBE_LEASE } from '../../shared/access/probe-identity.ts';
import type { KubeClusterStatus } from '../../shared/kinds/types.ts';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { CommandError } from '../command.ts';
import type { ApiAccess } from '../kubeconfig.ts';
import { type Finding, fail, notApplicable, ok, warn } from './check.ts';
import { type Exchange, type ExchangeRequest, measuredExchange } from './exchange.ts';

export interface ClusterContext {
  readonly access: ApiAccess;
  /** The clock of this machine. Epoch milliseconds. */
  readonly clockMs: () => number;
}

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** A Lease of no node: a patch of it changes nothing. */
const MISSING_LEASE = 'nodekeeper-doctor';
const CLUSTER_STATUS = '/apis/nodekeeper.dev/v1alpha1/clusterstatuses/cluster';
/** ACM renews a certificate 60 days before it expires (ACM User Guide, "Managed certificate renewal"). Days. */
const CERTIFICATE_DAYS_WARN = 14;
const CERTIFICATE_DAYS_FAIL = 2;
const DAY_MS = 86_400_000;
const SKEW_WARN_MS = 5_000;
/** STS accepts a signature of up to 5 minutes in the future or 15 minutes in the past; tokens of nodes less. */
const SKEW_FAIL_MS = 60_000;
/** Half of the default grace period: the safety gate closes about then. */
const TICK_WARN_MS = 20_000;
/** The alarm node-monitor-ticks has the same limit. */
const TICK_FAIL_MS = 60_000;

export const request = (
  { access }: ClusterContext,
  path: string,
  more: Partial<ExchangeRequest> = {},
): Promise<Exchange> =>
  measuredExchange({
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

export const unexpected = (what: string, response: Exchange): Finding =>
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
 * Whether heartbeats are stored. Every tick of node-monitor sends probes through the public endpoint, as nodes do, and
 * their Lease has the time of the last one that was stored.
 */
export async function checkProbe(context: ClusterContext): Promise<Finding> {
  const response = await request(context, `${LEASES}/${PROBE_LEASE}`);
  if (response.status === 404) {
    return fail(
      'no probe heartbeat was ever stored',
      'read the logs of node-monitor and heartbeat; with ingestGate: off in the policy no probe is sent',
    );
  }
  if (isForbidden(response)) return notApplicable(`the credential may not read the Lease of the probes`);
  const { spec = {} } = (response.object ?? {}) as { spec?: { renewTime?: string } };
  const renewedAtMs = parseTimeMs(spec.renewTime);
  if (response.status !== 200 || renewedAtMs === undefined) return unexpected('the Lease of the probes', response);
  return ageFinding(
    'the last probe heartbeat that was stored was sent',
    { ageMs: serverNowMs(context, response) - renewedAtMs, consequence: 'heartbeats are not stored' },
    'read docs/operations/alarms/heartbeats-failing.md',
  );
}

export const isForbidden = ({ status }: Exchange): boolean => status === 401 || status === 403;

const serverNowMs = ({ clockMs }: ClusterContext, { dateMs }: Exchange): number =>
  dateMs === undefined ? clockMs() : midSecondMs(dateMs);

function ageFinding(
  what: string,
  { ageMs, consequence }: { readonly ageMs: number; readonly consequence: string },
  next: string,
): Finding {
  const measured = `${what} ${formatAge(Math.max(0, ageMs))} ago`;
  if (ageMs > TICK_FAIL_MS) return fail(`${measured}: ${consequence}`, next);
  return ageMs > TICK_WARN_MS ? warn(measured, next) : ok(measured);
}

export interface ClusterState {
  readonly response: Exchange;
  readonly status: NonNullable<KubeClusterStatus['status']>;
}

/** What node-monitor stored at its last tick, or the finding that says why it cannot be read. */
export async function readState(context: ClusterContext): Promise<ClusterState | Finding> {
  const response = await request(context, CLUSTER_STATUS);
  if (isForbidden(response)) return notApplicable('the credential may not read the status of the cluster');
  if (response.status === 404) {
    return fail('the cluster has no resource clusterstatuses', 'it has an older version: deploy this one');
  }
  if (response.status !== 200) return unexpected('the status of the cluster', response);
  const { status = {} } = (response.object ?? {}) as KubeClusterStatus;
  return { response, status };
}

/** The age of the last tick of node-monitor that finished. */
export function ticksFinding(context: ClusterContext, { response, status }: ClusterState): Finding {
  const next = 'read docs/operations/alarms/node-monitor-ticks.md';
  const tickedAtMs = parseTimeMs(status.lastTickTime);
  if (tickedAtMs === undefined) {
    return fail('no tick of node-monitor has ever finished', `read the logs of function node-monitor; ${next}`);
  }
  return ageFinding(
    `${status.ticks ?? 0} ticks, ${status.nodes ?? 0} nodes; the last finished tick of node-monitor began`,
    { ageMs: serverNowMs(context, response) - tickedAtMs, consequence: 'no node failure is detected' },
    next,
  );
}

/** How watches are sent: the first one after a deployment and of a day measures it. */
export function watchesFinding({ status: { watches } }: Pick<ClusterState, 'status'>): Finding {
  if (watches === undefined) {
    return notApplicable('no watch has measured the function URL yet: run `kubectl get nodes -w`, then doctor again');
  }
  const when = `measured at ${watches.measuredTime}`;
  if (watches.form === 'LongPoll') {
    return fail(
      `watches are answered as long polls, because the function URL delivers no small chunk; ${when}`,
      'read docs/operations/alarms/watches-not-streamed.md',
    );
  }
  return ok(`the function URL delivers a change at once with ${watches.paddingBytes ?? 0} bytes of padding; ${when}`);
}

export function gateFinding({ status }: ClusterState): Finding {
  const { state = 'Open', reasons = [], since } = status.gate ?? {};
  const sinceText = since === undefined ? '' : ` since ${since}`;
  if (state === 'Closed') {
    return fail(
      `closed${sinceText}: ${reasons.join(', ')}; no node is newly marked, tainted or evicted`,
      'read docs/operations/alarms/evictions-held.md',
    );
  }
  return status.totalDisruption === true
    ? warn('open, but in total disruption: no pod is evicted', 'read docs/operations/alarms/total-disruption.md')
    : ok(`open${sinceText}`);
}
