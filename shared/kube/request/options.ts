/**
 * Options in the query of a request, read as upstream converts them: k8s.io/apimachinery pkg/runtime/conversion.go.
 */
import * as status from '../status.ts';
import { parseInt64 } from '../whole-number.ts';

/**
 * A boolean option. It is false when absent, `0`, or `false` in any case; any other text is true, the empty one too:
 * Python's client sends `watch=True`. Of a repeated option the first counts.
 * Source: Convert_Slice_string_To_bool.
 */
export function isAskedFor(query: URLSearchParams, option: string): boolean {
  const value = query.get(option);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/**
 * A query option that is a number (int64), as upstream reads it; undefined when absent. Further from zero than
 * Number.MAX_SAFE_INTEGER it is that. Of a repeated option the first counts.
 */
export function wholeNumberOf(query: URLSearchParams, option: string): number | undefined {
  const text = query.get(option);
  if (text === null) return undefined;
  const parsed = parseInt64(text);
  if (parsed.kind === 'malformed') throw status.badRequest(parsed.message);
  return parsed.value;
}

/** 0 for no limit, which a negative one means too. */
export const limitOf = (query: URLSearchParams): number => Math.max(0, wholeNumberOf(query, 'limit') ?? 0);

/** dryRun=All decides and answers without writing; any other value is refused, as upstream does. */
export function dryRunOf(query: URLSearchParams, fromBody: readonly unknown[] = []): boolean {
  const values = [...query.getAll('dryRun'), ...fromBody];
  for (const value of values) {
    if (value !== 'All') {
      throw status.badRequest(`Invalid value: ${JSON.stringify(value)}: dryRun must be "All"`);
    }
  }
  return values.length > 0;
}
