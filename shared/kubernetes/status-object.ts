/**
 * The object Status, and its bounds. Its texts repeat what a client sent, so without bounds a small request could cause
 * an answer of many megabytes. Every refusal passes here (StatusError), whatever writes it: a response, a line of a
 * watch or an item of a batch.
 */

/**
 * One reason within a Status. `reason` is a CauseType such as FieldValueInvalid, `field` a path such as
 * spec.taints[0].key.
 */
export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  /** Plural resource, except in Invalid, where it is the kind. */
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

export interface KubeStatus {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  /** HTTP status code. */
  readonly code: number;
}

/** Longest Status as JSON, in bytes. The bounds below keep every Status shorter. */
export const STATUS_BYTES_MAX = 65_536;
/** Causes in one Status. More are counted in the last one. */
export const CAUSES_MAX = 100;

/** The limit for the message. Bytes of JSON. */
const MESSAGE_BYTES_MAX = (STATUS_BYTES_MAX * 3) / 8;
/** The limit for all causes of a Status. Bytes of JSON. */
const CAUSES_BYTES_MAX = STATUS_BYTES_MAX / 2;
/** The limit for each text of a cause: an object that a message shows is shorter (causes.ts). Bytes of JSON. */
const CAUSE_TEXT_BYTES_MAX = 4_096;
/** The limit for a name, group, kind or uid. A valid one has at most 253 characters. Bytes of JSON. */
const NAME_BYTES_MAX = 1_024;
/** Braces, keys, commas and quotes of one cause. Bytes. */
const CAUSE_FRAME_BYTES = 40;

const CUT = '…';
const CUT_BYTES = 3;

export function boundedStatus(status: KubeStatus): KubeStatus {
  const { message, details } = status;
  return {
    ...status,
    ...(message === undefined ? {} : { message: cutText(message, MESSAGE_BYTES_MAX) }),
    ...(details === undefined ? {} : { details: boundedDetails(details) }),
  };
}

function boundedDetails(details: StatusDetails): StatusDetails {
  const bounded = { ...details };
  for (const key of ['name', 'group', 'kind', 'uid'] as const) {
    const text = details[key];
    if (text !== undefined) bounded[key] = cutText(text, NAME_BYTES_MAX);
  }
  if (details.causes !== undefined) bounded.causes = boundedCauses(details.causes);
  return bounded;
}

function boundedCauses(causes: readonly Cause[]): readonly Cause[] {
  const kept: Cause[] = [];
  // One more cause, which counts the others, always fits.
  let bytesLeft = CAUSES_BYTES_MAX - 2 * NAME_BYTES_MAX;
  for (const cause of causes) {
    const bounded = boundedCause(cause, CAUSE_TEXT_BYTES_MAX);
    bytesLeft -= CAUSE_FRAME_BYTES;
    for (const text of [bounded.reason, bounded.message, bounded.field ?? '']) bytesLeft -= jsonBytes(text);
    if (bytesLeft < 0 || kept.length === CAUSES_MAX) return [...kept, furtherCauses(causes, kept.length)];
    kept.push(bounded);
  }
  return kept;
}

function furtherCauses(causes: readonly Cause[], from: number): Cause {
  const { reason = '', field } = causes[from] ?? {};
  const message = `and ${causes.length - from} more causes`;
  return boundedCause({ reason, message, ...(field === undefined ? {} : { field }) }, NAME_BYTES_MAX);
}

const boundedCause = ({ reason, message, field }: Cause, bytesMax: number): Cause => ({
  reason: cutText(reason, bytesMax),
  message: cutText(message, bytesMax),
  ...(field === undefined ? {} : { field: cutText(field, bytesMax) }),
});

/** The text, cut to at most `bytesMax` bytes as JSON. What is cut off costs nothing. */
function cutText(text: string, bytesMax: number): string {
  if (text.length * UNIT_BYTES_MAX <= bytesMax) return text;
  let bytes = 0;
  let end = 0;
  for (let at = 0; at < text.length; at += 1) {
    bytes += unitBytes(text.charCodeAt(at));
    if (bytes <= bytesMax - CUT_BYTES) end = at + 1;
    if (bytes > bytesMax) return `${text.slice(0, end).toWellFormed()}${CUT}`;
  }
  return text;
}

function jsonBytes(text: string): number {
  let bytes = 0;
  for (let at = 0; at < text.length; at += 1) bytes += unitBytes(text.charCodeAt(at));
  return bytes;
}

/** The size of one UTF-16 unit as JSON in UTF-8: `\u0000`. */
const UNIT_BYTES_MAX = 6;
const QUOTATION_MARK = 0x22;
const BACKSLASH = 0x5c;

/**
 * The largest size of the unit as JSON in UTF-8. Bytes. A half of a surrogate pair counts as a lone one, which is
 * escaped.
 */
function unitBytes(unit: number): number {
  if (unit < 0x20 || (unit >= 0xd800 && unit <= 0xdfff)) return UNIT_BYTES_MAX;
  if (unit === QUOTATION_MARK || unit === BACKSLASH) return 2;
  if (unit < 0x80) return 1;
  return unit < 0x800 ? 2 : 3;
}
