/**
 * What EC2's errors mean to us, by their codes, never by the words of a message.
 * Source: EC2 API reference, "Error codes for the Amazon EC2 API".
 */

/** An error by the code that EC2 gives it, or by a name of ours where there was no answer to read. */
export class Ec2Error extends Error {
  override readonly name: string;
  constructor(code: string, message = code, options?: ErrorOptions) {
    super(message, options);
    this.name = code;
  }
}

/** No answer to this call: cut short, not XML, or without the element that answers carry. */
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
/** Where a detach finds nothing to do. IncorrectState is what a volume that is attached nowhere answers. */
const NOT_ATTACHED = new Set(['IncorrectState', 'InvalidAttachment.NotFound', 'InvalidVolume.NotFound']);
/** What asking again does not change. */
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

/** The failure of a call. The SDK has already sent it again where that helps. */
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

/** No account of this region has, or lately had, an instance of that id. */
export const isUnknownInstance = (error: unknown): boolean => codeOf(error) === 'InvalidInstanceID.NotFound';

export function detachRefusalOf(
  error: unknown,
): { readonly kind: 'notAttached' } | { readonly kind: 'refused'; readonly code: string } | undefined {
  const code = codeOf(error);
  if (NOT_ATTACHED.has(code)) return { kind: 'notAttached' };
  return REFUSED.has(code) ? { kind: 'refused', code } : undefined;
}
