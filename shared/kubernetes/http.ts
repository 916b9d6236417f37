import { type KubeStatus, StatusError } from './status.ts';

/** One HTTP request and its response, independent of the platform's event format. */
export interface HttpRequest {
  readonly method: string;
  /** Still percent-encoded, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly sourceIp: string;
  /** Aborted when the client has left. Absent: that is not known. */
  readonly gone?: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' } as const;

export function json(code: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
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

/**
 * Length of the texts of all warnings, and of each if they are longer together. The gateway permits 10 KB of headers.
 */
const WARNINGS_LENGTH_MAX = 4_096;
const WARNING_LENGTH_MAX = 256;

/**
 * Kubernetes: "Warning" response header, one `299 - "text"` a warning; kubectl prints them. The texts are cut as
 * upstream cuts them. Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go. A name of a field may have
 * any characters: those that a header cannot have are escaped.
 */
export function warningHeaders(warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return {};
  // Long texts are cut first: each may repeat a name of most of the body.
  const isFarTooLong = lengthOf(warnings) > WARNINGS_LENGTH_MAX;
  const texts = isFarTooLong ? [] : warnings.map(quotable);
  const isLong = isFarTooLong || lengthOf(texts) > WARNINGS_LENGTH_MAX;
  const sent: string[] = [];
  for (const text of isLong ? warnings.map((each) => quotable(each.slice(0, WARNING_LENGTH_MAX))) : texts) {
    if (lengthOf(sent) + text.length > WARNINGS_LENGTH_MAX) break;
    sent.push(text);
  }
  return { warning: sent.map((text) => `299 - "${text}"`).join(', ') };
}

/** The response with one more warning, before the others. */
export const withWarning = (response: HttpResponse, text: string): HttpResponse => {
  const warning = [
    ...Object.values(warningHeaders([text])),
    ...(response.headers['warning'] ? [response.headers['warning']] : []),
  ];
  return { ...response, headers: { ...response.headers, warning: warning.join(', ') } };
};

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + length, 0);

/** A text as a header can have it between quotes. */
export const quotable = (text: string): string =>
  text.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).replace(/[\\"]/g, '\\$&');

/** Media type of the bodies that typed Go clients send: kubectl from 1.32, Helm 4, kubelets, schedulers. */
export const PROTOBUF_MEDIA_TYPE = 'application/vnd.kubernetes.protobuf';

/** The first bytes of every such body: `k8s` and a zero byte. */
export const MAGIC = [0x6b, 0x38, 0x73, 0x00] as const;

/** Whether a body has the protobuf envelope of Kubernetes. The content type is not considered. */
export function isProtobuf(body: Uint8Array): boolean {
  return body.length >= MAGIC.length && MAGIC.every((byte, index) => body[index] === byte);
}
