/** Bodies of requests and answers, within bounds of size and time. */
import type { Http2ServerRequest } from 'node:http2';

interface BodyLimits<Refusal> {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  /** Decides on each part that arrives. A refusal ends the body. */
  readonly admit?: (bytes: number) => Refusal | undefined;
}

/**
 * The body of a request to a listener of HTTP/1.1 and HTTP/2, whole in time. Nothing is kept of one that is not, and no
 * more of it is read.
 */
export function readBody<Refusal extends string = never>(
  request: Http2ServerRequest,
  { bytesMax, timeoutMs, admit = () => undefined }: BodyLimits<Refusal>,
): Promise<Buffer | 'tooLarge' | 'late' | Refusal> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (outcome: Buffer | 'tooLarge' | 'late' | Refusal) => {
      clearTimeout(timer);
      request.off('data', take);
      // A request closes after its end as well: an unused error would be made for each.
      request.off('close', fail);
      if (typeof outcome === 'string') request.pause();
      resolve(outcome);
    };
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      const refusal = bytes > bytesMax ? 'tooLarge' : admit(chunk.length);
      if (refusal === undefined) chunks.push(chunk);
      else settle(refusal);
    };
    const timer = setTimeout(() => settle('late'), timeoutMs);
    const fail = (cause?: unknown) => {
      clearTimeout(timer);
      reject(new Error('the client left before its body was whole', { cause }));
    };
    request.on('data', take);
    request.once('end', () => settle(Buffer.concat(chunks)));
    request.once('error', fail);
    request.once('close', fail);
  });
}

/** All bytes of a request or answer of HTTP/1.1; undefined if there are more. Rejects if the other side disconnects. */
export async function bytesOf(stream: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
