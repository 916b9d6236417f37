/**
 * The size of a response. A Lambda response may have 6 MB, after text was JSON-encoded once more and bytes were encoded
 * in base64. Large texts are compressed for clients that accept gzip.
 */
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';

/** The limit is 6,291,556. The rest is for headers and their encoding. */
export const RESPONSE_BYTES_MAX = 6_200_000;
/** Texts longer than this are compressed. Characters. */
const COMPRESS_FROM_CHARACTERS = 1_000_000;
/** UTF-8 bytes of one character of JSON text, JSON-encoded once more, at most. */
const BYTES_PER_CHARACTER_MAX = 3;

export type Gzip = (text: string) => Uint8Array;

export const acceptsGzip = (request: HttpRequest): boolean =>
  /(^|[\s,])gzip\s*(;\s*q=(1|0?\.\d*[1-9])[\d.]*\s*)?(,|$)/i.test(request.headers['accept-encoding'] ?? '');

/** The response with a gzip body, when the body is large and the client accepts gzip. */
export function compressedIfLarge(request: HttpRequest, response: HttpResponse, gzip: Gzip): HttpResponse {
  if (typeof response.body !== 'string' || response.body.length <= COMPRESS_FROM_CHARACTERS || !acceptsGzip(request)) {
    return response;
  }
  const vary = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' };
  return { ...response, headers: { ...response.headers, ...vary }, body: gzip(response.body) };
}

/** Bytes that the body uses of RESPONSE_BYTES_MAX. An upper bound where that bound already fits. */
export function payloadBytes({ body }: HttpResponse): number {
  if (typeof body !== 'string') return Math.ceil(body.byteLength / 3) * 4;
  const atMost = body.length * BYTES_PER_CHARACTER_MAX;
  return atMost <= RESPONSE_BYTES_MAX ? atMost : Buffer.byteLength(JSON.stringify(body));
}
