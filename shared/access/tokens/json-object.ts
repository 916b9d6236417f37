import { isJsonObject, type JsonObject } from '../../kubernetes/wire/json-value.ts';

/** Parses bytes as a JSON object; undefined for anything else. */
export function jsonObjectIn(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
