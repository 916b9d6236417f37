import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isObject } from '../assembly/template.ts';

/**
 * The HTTP response an API makes of what a function returned (payload format 2.0). Without a statusCode the whole value
 * becomes a JSON body with 200. A function that fails answers 500, an integration that takes too long 503: HTTP APIs do
 * not use the 502 and 504 of REST APIs. A header that cannot be sent counts as a failure of the function.
 */
export interface GatewayResponse {
  readonly statusCode: number;
  /** A header with several values is sent several times. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Text, or the bytes of a response that was Base64. */
  readonly body: string | Buffer;
}

/** Headers the gateway writes itself or that belong to one connection. */
const OWN = new Set(['connection', 'content-length', 'keep-alive', 'transfer-encoding', 'upgrade', 'date']);

export function gatewayMessage(statusCode: number, message: string): GatewayResponse {
  return {
    statusCode,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  };
}

/** @param payload JSON text a function returned. */
export function gatewayResponse(payload: string): GatewayResponse {
  const returned: unknown = JSON.parse(payload);
  if (!isObject(returned) || returned['statusCode'] === undefined) {
    if (returned === null) return gatewayMessage(500, 'Internal Server Error');
    const body = typeof returned === 'string' ? returned : JSON.stringify(returned);
    return { statusCode: 200, headers: { 'content-type': 'application/json' }, body };
  }
  const statusCode = Number(returned['statusCode']);
  const body = returned['body'] ?? '';
  const wellFormed = Number.isInteger(statusCode) && statusCode >= 100 && statusCode <= 599 && typeof body === 'string';
  const headers = responseHeaders(returned);
  if (!wellFormed || !Object.entries(headers).every(isSendable)) return gatewayMessage(500, 'Internal Server Error');
  return {
    statusCode,
    headers,
    body: returned['isBase64Encoded'] === true ? Buffer.from(body, 'base64') : body,
  };
}

/** Whether the header has only characters that HTTP permits. */
function isSendable([name, value]: readonly [string, string | readonly string[]]): boolean {
  try {
    validateHeaderName(name);
    for (const each of typeof value === 'string' ? [value] : value) validateHeaderValue(name, each);
    return true;
  } catch {
    return false;
  }
}

function responseHeaders(returned: Record<string, unknown>): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  const single = isObject(returned['headers']) ? returned['headers'] : {};
  const several = isObject(returned['multiValueHeaders']) ? returned['multiValueHeaders'] : {};
  for (const [name, value] of Object.entries(single)) {
    if (!OWN.has(name.toLowerCase()) && value !== null) headers[name.toLowerCase()] = String(value);
  }
  for (const [name, values] of Object.entries(several)) {
    if (!OWN.has(name.toLowerCase()) && Array.isArray(values)) headers[name.toLowerCase()] = values.map(String);
  }
  if (Array.isArray(returned['cookies'])) headers['set-cookie'] = returned['cookies'].map(String);
  headers['content-type'] ??= 'text/plain;charset=utf-8';
  return headers;
}
