/**
 * Checks the options of lists and watches. Source: k8s.io/apimachinery pkg/apis/meta/internalversion/validation
 * (ValidateListOptions) and k8s.io/apiserver pkg/storage/cacher.
 */

import { forbiddenField, notSupported } from '../causes.ts';
import * as status from '../status.ts';
import { parseUint64 } from '../whole-number.ts';
import { optionsFault } from './request.ts';

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
