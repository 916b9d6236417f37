/**
 * Classifies EC2's errors by their codes, never by the text of a message.
 * Source: EC2 API reference, "Error codes for the Amazon EC2 API".
 */

/** An error with EC2's code, or with a code of our own if the response had none. */
export class Ec2Error extends Error {
  override readonly name: string;
  constructor(code: string, message = code, options?: ErrorOptions) {
    super(message, options);
    this.name = code;
  }
}

/** Not a response to this call: truncated, not XML, or without a required element. */
export const MALFORMED_ANSWER = 'MalformedAnswer';

const THROTTLED = new Set([
  'RequestLimitExceeded',
  'Throttling',
  'ThrottlingException',
  'ThrottledException',
  'RequestThrottled',
  'RequestThrottledException',
  'EC2ThrottledException',
  'TooManyRequestsException',
  'BandwidthLimitExceeded',
  'SlowDown',
]);
const TIMEOUT = new Set(['TimeoutError', 'AbortError', 'RequestTimeout', 'RequestTimeoutException']);
/** A detach has nothing to do. EC2 returns IncorrectState for a volume that is not attached. */
const NOT_ATTACHED = new Set(['IncorrectState', 'InvalidAttachment.NotFound', 'InvalidVolume.NotFound']);
/** A retry does not change these. */
const REFUSED = new Set([
  'OperationNotPermitted',
  'UnsupportedOperation',
  'UnsupportedOperationException',
  'UnauthorizedOperation',
  'AccessDenied',
  'InvalidVolumeID.Malformed',
  'InvalidInstanceID.Malformed',
  'InvalidParameterValue',
  'InvalidParameterCombination',
]);

export const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && typeof (error as { name?: unknown }).name === 'string'
    ? (error as { name: string }).name
    : 'unknown';

export interface Failure {
  readonly kind: 'failed';
  readonly cause: 'error' | 'throttled' | 'timeout';
  readonly message: string;
}

/** An answer that cannot be read. */
export const MALFORMED: Failure = { kind: 'failed', cause: 'error', message: `EC2: ${MALFORMED_ANSWER}` };

/** The failure of a call. The SDK has already repeated the call where that helps. */
export function failureOf(error: unknown): Failure {
  const code = codeOf(error);
  const socketCode = (error as { code?: unknown } | null)?.code;
  const cause = THROTTLED.has(code)
    ? 'throttled'
    : TIMEOUT.has(code) || socketCode === 'ETIMEDOUT'
      ? 'timeout'
      : 'error';
  const socket = typeof socketCode === 'string' && code === 'Error' ? ` ${socketCode}` : '';
  return { kind: 'failed', cause, message: `EC2: ${code}${socket}` };
}

/** No account of this region has an instance of that id, or recently had one. */
export const isUnknownInstance = (error: unknown): boolean => codeOf(error) === 'InvalidInstanceID.NotFound';

export function detachRefusalOf(
  error: unknown,
): { readonly kind: 'notAttached' } | { readonly kind: 'refused'; readonly code: string } | undefined {
  const code = codeOf(error);
  if (NOT_ATTACHED.has(code)) return { kind: 'notAttached' };
  return REFUSED.has(code) ? { kind: 'refused', code } : undefined;
}
