/**
 * How a stream makes the front of the function deliver what was written.
 *
 * A function URL may hold a chunk until more is written. Reports differ on how much more: one more chunk (honojs/hono
 * 1678, H4ad/serverless-adapter 166), 16 KB (aws/aws-lambda-nodejs-runtime-interface-client 94), 100 KB (102 of the
 * same). So each deployment measures it, and uses the least padding with which a chunk is delivered in time
 * (docs/decisions/0053-padded-streams.md).
 */

/** Bytes of padding, written as one chunk after the chunks to deliver. The least first; 0: none is needed. */
export const PADDINGS = [0, 1, 16_384, 102_400] as const;

export type StreamForm =
  | { readonly kind: 'stream'; readonly paddingBytes: number }
  /** No padding delivers in time: a watch ends with its first changes, because the end delivers everything. */
  | { readonly kind: 'longPoll' };

/** Until the first measurement: what most reports found sufficient. */
export const DEFAULT_FORM: StreamForm = { kind: 'stream', paddingBytes: 1 };

/**
 * White space that JSON permits between two values. No line feed: the Python client fails on an empty line. It ignores
 * a last line without a line feed, as the others do.
 */
export const whitespace = (bytes: number): string => ' '.repeat(bytes);

/**
 * A chunk that arrives later is not delivered: `kubectl wait --timeout=1s` is the shortest wait in use. Milliseconds.
 */
export const DELIVERED_MS = 1_000;

export interface MeasuredForm {
  readonly form: StreamForm;
  readonly measuredMs: number;
  /** What was measured: another bundle, or another URL, is measured again. */
  readonly deployment: string;
}

const DAY_MS = 86_400_000;
/** After a measurement without a form: it may have met a fault of the moment. Milliseconds. */
const REPEAT_MS = 600_000;

/** Whether the first watch from now on measures. */
export function isMeasurementDue(
  stored: MeasuredForm | undefined,
  { deployment, nowMs }: { readonly deployment: string; readonly nowMs: number },
): boolean {
  if (stored?.deployment !== deployment) return true;
  return nowMs - stored.measuredMs >= (stored.form.kind === 'longPoll' ? REPEAT_MS : DAY_MS);
}

/**
 * Whether a chunk arrived within DELIVERED_MS. `failed`: the stream could not be opened, which says nothing of chunks.
 */
export type Arrival = 'inTime' | 'late' | 'failed';

/** The least form that delivers in time. undefined: it could not be measured. */
export async function leastForm(
  arrivalWith: (paddingBytes: number) => Promise<Arrival>,
): Promise<StreamForm | undefined> {
  for (const paddingBytes of PADDINGS) {
    const arrival = await arrivalWith(paddingBytes);
    if (arrival === 'failed') return undefined;
    if (arrival === 'inTime') return { kind: 'stream', paddingBytes };
  }
  return { kind: 'longPoll' };
}
