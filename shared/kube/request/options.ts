/**
 * Options in the query of a request, read as upstream converts them: k8s.io/apimachinery pkg/runtime/conversion.go.
 */
import * as status from '../status.ts';
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

/** The page size of a list. 0 or less in the query means no limit and returns 0. */
export const limitOf = (query: URLSearchParams): number => Math.max(0, wholeNumberOf(query, 'limit') ?? 0);

/** Whether the request is a dry run (dryRun=All). @throws StatusError 400 for any other value, as upstream */
export function dryRunOf(query: URLSearchParams, fromBody: readonly unknown[] = []): boolean {
  const values = [...query.getAll('dryRun'), ...fromBody];
  for (const value of values) {
    if (value !== 'All') {
      throw status.badRequest(`Invalid value: ${JSON.stringify(value)}: dryRun must be "All"`);
    }
  }
  return values.length > 0;
}
