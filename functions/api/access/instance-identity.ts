/**
 * Enrolment by the instance identity document, which AWS signs. The document proves which instance sends the request,
 * not that the instance may join, and it never changes. So it is accepted only for a young instance, for one identity,
 * and for names that EC2 reports for this instance. EC2 User Guide: "Instance identity documents for Amazon EC2
 * instances".
 */
import type { CloudAnswer, NodeAddress } from '../../../shared/fleet/instances/instance.ts';
import { parseProviderId } from '../../../shared/fleet/instances/provider-id.ts';
import { parseRfc3339 } from '../../../shared/kubernetes/rfc3339.ts';

/** Default maximum age of an instance at its enrolment. Seconds. */
export const INSTANCE_AGE_SECONDS_MAX = 900;
/** Maximum difference between our clock and the clock of EC2. Milliseconds. */
const CLOCK_TOLERANCE_MS = 60_000;

export const INSTANCE_USER_PREFIX = 'system:instance:';

export interface InstanceScope {
  readonly accountId: string;
  readonly region: string;
  /** Maximum age of the instance. Seconds since its launch. */
  readonly ageSecondsMax: number;
}

export type InstanceVerdict =
  | { readonly kind: 'instance'; readonly instanceId: string; readonly launchedAtMs: number }
  | { readonly kind: 'refused'; readonly reason: string };

const refused = (reason: string): InstanceVerdict => ({ kind: 'refused', reason });

/** Checks the instance identity document. `document`: a JSON object with a verified signature. */
export function instanceVerdict(
  document: Readonly<Record<string, unknown>>,
  scope: InstanceScope,
  nowMs: number,
): InstanceVerdict {
  const { accountId, region, instanceId, pendingTime } = document;
  if (typeof instanceId !== 'string' || parseProviderId(instanceId).kind !== 'ec2') return refused('names no instance');
  if (accountId !== scope.accountId) return refused('of another account');
  if (region !== scope.region) return refused('of another region');
  const launchedAtMs = typeof pendingTime === 'string' ? parseRfc3339(pendingTime) : undefined;
  if (launchedAtMs === undefined) return refused('says no launch time');
  if (launchedAtMs > nowMs + CLOCK_TOLERANCE_MS) return refused('launched in the future');
  if (nowMs - launchedAtMs > scope.ageSecondsMax * 1_000) return refused('launched too long ago');
  return { kind: 'instance', instanceId, launchedAtMs };
}

export type InstanceEnrolment =
  | { readonly kind: 'granted' }
  | { readonly kind: 'forbidden'; readonly reason: string }
  /** EC2 did not respond, so the state of the instance is unknown. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** Whether this instance may enrol under this name, by its current state in EC2. */
export function instanceEnrolmentVerdict(
  nodeName: string,
  instanceId: string,
  known: { readonly answer: CloudAnswer; readonly addresses: readonly NodeAddress[] },
): InstanceEnrolment {
  const { answer, addresses } = known;
  if (answer.kind === 'failed') return { kind: 'unavailable', reason: `EC2 could not be asked about ${instanceId}` };
  if (answer.kind !== 'found' || (answer.state !== 'running' && answer.state !== 'pending')) {
    return { kind: 'forbidden', reason: `instance ${instanceId} is not running` };
  }
  const names = addresses.filter(({ type }) => type === 'InternalDNS' || type === 'Hostname');
  if (nodeName === instanceId || names.some(({ address }) => address === nodeName)) return { kind: 'granted' };
  const allowed = [instanceId, ...new Set(names.map(({ address }) => address))].join(', ');
  return { kind: 'forbidden', reason: `instance ${instanceId} may be named ${allowed}` };
}
