/**
 * /healthz, /livez and /readyz of the process, in upstream's form. A live process answers; a ready one also writes,
 * ticks and is not behind. Source: kubernetes.io, "Kubernetes API health endpoints".
 */
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';

export interface HealthCheck {
  readonly name: string;
  /** Why it fails; undefined: it does not. */
  fault(): string | undefined;
}

/** A process that cannot write or tick is alive: a restart would not help, and reads go on. */
export function answerHealth(
  { path, query }: Pick<HttpRequest, 'path' | 'query'>,
  checks: readonly HealthCheck[],
): HttpResponse {
  const name = path.slice(1);
  const excluded = new Set(query.getAll('exclude'));
  const results = [{ name: 'ping', fault: undefined as string | undefined }];
  if (name === 'readyz') {
    for (const check of checks) if (!excluded.has(check.name)) results.push({ name: check.name, fault: check.fault() });
  }
  const isFailed = results.some(({ fault }) => fault !== undefined);
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
  if (!isFailed && !query.has('verbose')) return { status: 200, headers, body: 'ok' };
  const lines = results.map(({ name: check, fault }) =>
    fault === undefined ? `[+]${check} ok` : `[-]${check} failed: ${fault}`,
  );
  return {
    status: isFailed ? 500 : 200,
    headers,
    body: `${lines.join('\n')}\n${name} check ${isFailed ? 'failed' : 'passed'}\n`,
  };
}
