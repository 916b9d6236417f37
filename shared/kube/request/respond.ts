/** Answers: objects, lists, tables and Status objects, always as JSON. */

import type { HttpResponse } from '../../ports/http.ts';
import { type KubeStatus, StatusError } from '../status.ts';

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' } as const;

export function json(code: number, body: unknown, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return { status: code, headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify(body) };
}

/** A Status as an answer. 429 carries Retry-After only when the Status says so: Go clients retry silently with it. */
export function statusResponse(status: KubeStatus): HttpResponse {
  const retryAfterSeconds = status.details?.retryAfterSeconds;
  return json(
    status.code,
    status,
    retryAfterSeconds === undefined || retryAfterSeconds <= 0 ? {} : { 'retry-after': String(retryAfterSeconds) },
  );
}

export const isStatusError = (error: unknown): error is StatusError => error instanceof StatusError;

/** Kubernetes: "Warning" response header, one `299 - "text"` a warning; kubectl prints them. */
export const warningHeaders = (warnings: readonly string[]): Record<string, string> =>
  warnings.length === 0
    ? {}
    : { warning: warnings.map((text) => `299 - "${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`).join(', ') };
