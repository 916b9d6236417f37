/**
 * The answer to a request that failed through a fault of ours, without detail.
 *
 * Tables that are throttled, do not answer, or let other writers win every attempt can accept the request later: the
 * answer is 503 with Retry-After. client-go, and so kubectl, then sends the request again, ten times at most
 * (rest/with_retry.go). Upstream asks for it as well while etcd cannot be reached (apiserver,
 * pkg/storage/errors/storage.go). The seconds are random: the clients of one outage must not return together.
 */

import type { RandomSource } from '../clock.ts';
import * as status from '../kubernetes/status.ts';
import { StoreFault } from '../store/item-store.ts';

const RETRY_AFTER_SECONDS_MIN = 1;
const RETRY_AFTER_SECONDS_MAX = 3;

const MESSAGES: Readonly<Record<'throttled' | 'unanswered', string>> = {
  throttled: 'the tables cannot accept the request at present, please try again',
  unanswered: 'the tables did not answer in time, and may have accepted the request; please try again',
};

export function statusOfFault(fault: unknown, random: Pick<RandomSource, 'fraction'>): status.StatusError {
  if (!(fault instanceof StoreFault) || !fault.retryable) {
    return status.internalError('the request could not be completed', { cause: fault });
  }
  const choices = RETRY_AFTER_SECONDS_MAX - RETRY_AFTER_SECONDS_MIN + 1;
  const retryAfterSeconds = RETRY_AFTER_SECONDS_MIN + Math.floor(random.fraction() * choices);
  const message = MESSAGES[fault.code === 'throttled' ? 'throttled' : 'unanswered'];
  return status.serviceUnavailable(message, { retryAfterSeconds, cause: fault });
}
