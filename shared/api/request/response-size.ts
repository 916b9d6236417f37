/**
 * Answers in the size the platform takes. A Lambda answer may have 6 MB, in which a text stands JSON-encoded once more
 * and bytes in base64; large texts go compressed to those who accept it.
 */
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';

/** Of 6,291,556, headers and the frame around them taken off. */
export const RESPONSE_BYTES_MAX = 6_200_000;
/** Texts longer than this are compressed. Characters. */
const COMPRESS_FROM_CHARACTERS = 1_000_000;
/** A character of JSON text takes at most this in UTF-8, encoded as JSON once more. */
const BYTES_PER_CHARACTER_MAX = 3;

export type Gzip = (text: string) => Uint8Array;

export const acceptsGzip = (request: HttpRequest): boolean =>
  /(^|[\s,])gzip\s*(;\s*q=(1|0?\.\d*[1-9])[\d.]*\s*)?(,|$)/i.test(request.headers['accept-encoding'] ?? '');

/** Compressed when that is wanted and worth it. */
export function compressedIfLarge(request: HttpRequest, response: HttpResponse, gzip: Gzip): HttpResponse {
  if (typeof response.body !== 'string' || response.body.length <= COMPRESS_FROM_CHARACTERS || !acceptsGzip(request)) {
    return response;
  }
  const vary = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' };
  return { ...response, headers: { ...response.headers, ...vary }, body: gzip(response.body) };
}

/** Bytes the body takes of RESPONSE_BYTES_MAX; exact only where it matters. */
export function payloadBytes({ body }: HttpResponse): number {
  if (typeof body !== 'string') return Math.ceil(body.byteLength / 3) * 4;
  const atMost = body.length * BYTES_PER_CHARACTER_MAX;
  return atMost <= RESPONSE_BYTES_MAX ? atMost : Buffer.byteLength(JSON.stringify(body));
}
