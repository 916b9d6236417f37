/**
 * The size of a response. Lambda limits a response to 6 MB. It counts a text body as a JSON string and a binary body
 * as base64. Large texts are compressed for clients that accept gzip. AWS: "Lambda quotas".
 */
import type { HttpRequest, HttpResponse } from '../kubernetes/request/http.ts';

/** Encoded bytes of a body. Lambda accepts 6,291,556 bytes per response; the difference is for the headers. */
export const RESPONSE_BYTES_MAX = 6_200_000;
/** Length of the JSON of all objects in one response that is not compressed. Characters. */
export const PLAIN_LIST_CHARACTERS_MAX = 4_500_000;
/** Texts longer than this are compressed. Characters. */
const COMPRESS_FROM_CHARACTERS = 1_000_000;
/** A character of JSON text has at most 3 bytes in UTF-8. A character that needs a second JSON escape has 2. */
const BYTES_PER_CHARACTER_MAX = 3;

export type Gzip = (text: string) => Uint8Array | Promise<Uint8Array>;

export const acceptsGzip = (request: HttpRequest): boolean =>
  (request.headers['accept-encoding'] ?? '').split(',').some((range) => {
    const [coding = '', weight = 'q=1'] = range.split(';').map((part) => part.trim().toLowerCase());
    return coding === 'gzip' && weight.startsWith('q=') && Number(weight.slice(2)) > 0;
  });

/** The response with a gzip body, when the body is large and the client accepts gzip. */
export async function compressedIfLarge(
  request: HttpRequest,
  response: HttpResponse,
  gzip: Gzip,
): Promise<HttpResponse> {
  if (typeof response.body !== 'string' || response.body.length <= COMPRESS_FROM_CHARACTERS || !acceptsGzip(request)) {
    return response;
  }
  const encoding = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' };
  return { ...response, headers: { ...response.headers, ...encoding }, body: await gzip(response.body) };
}

/**
 * Length of the encoded body in bytes, to compare with RESPONSE_BYTES_MAX. For a text that fits at
 * BYTES_PER_CHARACTER_MAX this is an upper bound, because the exact length needs a second encoding.
 */
export function payloadBytes({ body }: HttpResponse): number {
  if (typeof body !== 'string') return Math.ceil(body.byteLength / 3) * 4;
  const atMost = body.length * BYTES_PER_CHARACTER_MAX;
  return atMost <= RESPONSE_BYTES_MAX ? atMost : Buffer.byteLength(JSON.stringify(body));
}
