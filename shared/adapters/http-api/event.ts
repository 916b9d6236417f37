/** Converts events of API Gateway's HTTP API, payload format 2.0, to our request, and our response to its result. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, LambdaFunctionURLEvent } from 'aws-lambda';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';

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

export function resultOf(response: HttpResponse): APIGatewayProxyStructuredResultV2 {
  const text = typeof response.body === 'string';
  return {
    statusCode: response.status,
    headers: { ...response.headers },
    body: text ? (response.body as string) : Buffer.from(response.body as Uint8Array).toString('base64'),
    isBase64Encoded: !text,
  };
}

/** Writes a response to a function URL's response stream. Lines of its body may follow later. */
export async function streamAnswer(
  answer: { readonly head: HttpResponse; readonly lines?: AsyncIterable<string> },
  stream: Writable,
): Promise<void> {
  const { head, lines } = answer;
  const out = awslambda.HttpResponseStream.from(stream, { statusCode: head.status, headers: { ...head.headers } });
  // The first bytes send the head. Without them the client would receive it only with the first event.
  out.write(head.body);
  for await (const line of lines ?? []) {
    if (!out.write(line)) await once(out, 'drain');
  }
  out.end();
  await once(out, 'finish');
}
