/** Converts events of API Gateway's HTTP API, payload format 2.0, to our request, and our response to its result. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, LambdaFunctionURLEvent } from 'aws-lambda';
import type { HttpRequest, HttpResponse } from '../kubernetes/http.ts';

const EMPTY = new Uint8Array();

export function requestOf(event: APIGatewayProxyEventV2 | LambdaFunctionURLEvent): HttpRequest {
  return {
    method: event.requestContext.http.method,
    path: event.rawPath,
    query: new URLSearchParams(event.rawQueryString),
    headers: event.headers as Record<string, string>,
    body:
      event.body === undefined || event.body === ''
        ? EMPTY
        : Buffer.from(event.body, event.isBase64Encoded ? 'base64' : 'utf8'),
    sourceIp: event.requestContext.http.sourceIp,
  };
}

/**
 * A request to a function URL. Its `rawPath` is as the client sent it, whereas an HTTP API decodes it, and ends it at a
 * decoded `?`. Both become the same path here, because a watch is redirected from one to the other.
 */
export function requestOfUrl(event: APIGatewayProxyEventV2 | LambdaFunctionURLEvent): HttpRequest {
  const request = requestOf(event);
  return { ...request, path: decodedPath(request.path) };
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path).split('?', 1)[0] ?? '';
  } catch {
    // An HTTP API leaves a malformed escape as it is.
    return path;
  }
}

export function resultOf(response: HttpResponse): APIGatewayProxyStructuredResultV2 {
  const text = typeof response.body === 'string';
  return {
    statusCode: response.status,
    headers: { ...response.headers },
    body: text ? (response.body as string) : Buffer.from(response.body as Uint8Array).toString('base64'),
    isBase64Encoded: !text,
  };
}

/** Errors of broken connections of streams. */
const streamErrors = new WeakSet<object>();

/**
 * For rejections that nothing handles. When the connection of a streamed response breaks, or is destroyed because its
 * client hangs, AWS's runtime client (aws-lambda-ric 4.0.2) rejects promises that it does not handle, and Node.js would
 * end the process with code 1. The stream has ended; the environment can receive the next event.
 *
 * @throws the reason, if it is another one: Node.js then exits as without this handler
 */
export function throwUnlessOfStream(reason: unknown): void {
  if (typeof reason !== 'object' || reason === null || !streamErrors.has(reason)) throw reason;
}

/** A client that accepts nothing for this long has disconnected, or hangs. Milliseconds. */
const DRAIN_MS = 30_000;

/**
 * Writes a response to a function URL's response stream. Lines of its body may follow later. They are not continued
 * after a write failed, or when the client accepted nothing for `drainMs`. The end does not wait longer for the client
 * either: it would hold the execution until its time limit.
 *
 * An answer has at least one byte: the front may not notice the end of an empty one for 16 minutes.
 */
export async function streamAnswer(
  answer: {
    readonly head: HttpResponse;
    readonly lines?: AsyncIterable<string>;
    readonly output?: AsyncIterable<Uint8Array>;
  },
  stream: Writable,
  drainMs = DRAIN_MS,
): Promise<void> {
  const { head, lines, output } = answer;
  // 204 permits no byte.
  const statusCode = head.status === 204 ? 200 : head.status;
  const out = awslambda.HttpResponseStream.from(stream, { statusCode, headers: { ...head.headers } });
  // A failed write is noticed by its state below. Without a listener it would end the process.
  out.on('error', (error) => streamErrors.add(error));
  const closed = new AbortController();
  out.once('close', () => closed.abort());
  const hasEmitted = (event: 'drain' | 'finish'): Promise<boolean> =>
    once(out, event, { signal: AbortSignal.any([closed.signal, AbortSignal.timeout(drainMs)]) }).then(
      () => true,
      () => false,
    );
  let hasBytes = head.body.length > 0;
  if (hasBytes) out.write(head.body);
  for await (const chunk of lines ?? output ?? []) {
    if (out.destroyed) return;
    if (chunk.length === 0) continue;
    hasBytes = true;
    if (out.write(chunk)) {
      // Node would send the chunks of one turn as one packet, and the front may deliver a packet only when the next
      // arrives.
      await nextTurn();
      continue;
    }
    if (await hasEmitted('drain')) continue;
    out.destroy();
    return;
  }
  if (out.destroyed) return;
  if (!hasBytes) out.write(' ');
  out.end();
  if (!(await hasEmitted('finish'))) out.destroy();
}
