/**
 * Options in the query of a request, read as upstream converts them: k8s.io/apimachinery pkg/runtime/conversion.go.
 */
import * as status from '../status.ts';
import { notSupported } from '../validation/causes.ts';
import { parseInt64 } from '../whole-number.ts';

/**
 * A boolean option. It is false when absent, `0`, or `false` in upper or lower case. Any other text is true, the empty
 * text included. The Python client sends `watch=True`. Only the first value of a repeated option is used.
 * Source: Convert_Slice_string_To_bool.
 */
export function isAskedFor(query: URLSearchParams, option: string): boolean {
  const value = query.get(option);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/**
 * An int64 option, undefined when absent. The result is limited to ±Number.MAX_SAFE_INTEGER. Only the first value of a
 * repeated option is used. @throws StatusError 400 for another text
 */
export function wholeNumberOf(query: URLSearchParams, option: string): number | undefined {
  const text = query.get(option);
  if (text === null) return undefined;
  const parsed = parseInt64(text);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.message);
  return parsed.value;
}

/** A duration in Go's form, such as 32s or 1m30s. Go accepts both characters for micro. */
const GO_DURATION = /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;

/**
 * Checks `timeout`, the deadline that a client sets for its request. It is not used: a request ends sooner anyway.
 *
 * @throws StatusError 400 for a text that is no duration
 */
export function checkTimeout(query: URLSearchParams): void {
  const timeout = query.get('timeout') ?? '';
  if (timeout === '' || GO_DURATION.test(timeout)) return;
  throw status.badRequest('invalid timeout specified in the request URL');
}

/** The page size of a list. 0 or less in the query means no limit and returns 0. */
export const limitOf = (query: URLSearchParams): number => Math.max(0, wholeNumberOf(query, 'limit') ?? 0);

/** The object that the options of a verb are decoded into upstream. Refusals name it. */
export type OptionsKind = 'CreateOptions' | 'DeleteOptions' | 'ListOptions' | 'PatchOptions' | 'UpdateOptions';

/** The 422 for options that fail validation. */
export const optionsFault = (kind: OptionsKind, causes: readonly status.Cause[]): status.StatusError =>
  status.invalid({ group: 'meta.k8s.io', kind }, '', causes);

/** Whether the request is a dry run (dryRun=All). @throws StatusError 422 for any other value */
export function dryRunOf(query: URLSearchParams, kind: OptionsKind, fromBody: readonly unknown[] = []): boolean {
  const values = [...query.getAll('dryRun'), ...fromBody];
  if (values.some((value) => value !== 'All')) throw optionsFault(kind, [notSupported('dryRun', values, ['All'])]);
  return values.length > 0;
}
