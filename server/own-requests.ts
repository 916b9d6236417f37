/**
 * Requests of this process to its own listener, over TLS as those of any client. Node's fetch cannot trust one more
 * authority for one origin only.
 */
import { Agent, request } from 'node:https';

/** A probe's answer is a Lease. Bytes. */
const ANSWER_BYTES_MAX = 65_536;

/** @param ca PEM; undefined: the authorities of the system */
export function ownFetch(ca: string | undefined): typeof globalThis.fetch {
  const agent = new Agent({ keepAlive: true, maxSockets: 2, ...(ca !== undefined && { ca }) });
  return (input, init = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(
        String(input),
        {
          agent,
          method: init.method ?? 'GET',
          headers: Object.fromEntries(new Headers(init.headers)),
          ...(init.signal != null && { signal: init.signal }),
        },
        (answer) => {
          const chunks: Buffer[] = [];
          let bytes = 0;
          answer.on('data', (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > ANSWER_BYTES_MAX) answer.destroy(new RangeError('the answer is too long'));
            else chunks.push(chunk);
          });
          answer.once('end', () => resolve(new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 500 })));
          answer.once('error', reject);
        },
      );
      sent.once('error', reject);
      sent.end(init.body == null ? undefined : String(init.body));
    });
}
