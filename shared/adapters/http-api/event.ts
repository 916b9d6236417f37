/** API Gateway HTTP API, payload format 2.0, to and from our request and response. */
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';

const EMPTY = new Uint8Array();

export function requestOf(event: APIGatewayProxyEventV2): HttpRequest {
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
