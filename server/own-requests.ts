/**
 * Requests of this process to its own listener, over TLS as those of any client. The certificate may be for other names
 * than the address, and of an authority that this machine does not know. So it must be the very one of the listener.
 * Node's fetch has no such option.
 */
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'node:https';

/** A probe's answer is a Lease. Bytes. */
const ANSWER_BYTES_MAX = 65_536;

/** @param certificatePem what the listener uses now; other certificates of its chain may follow */
export function ownFetch(certificatePem: () => string): typeof globalThis.fetch {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  return (input, init = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(
        String(input),
        {
          agent,
          ca: new X509Certificate(certificatePem()).toString(),
          allowPartialTrustChain: true,
          checkServerIdentity: () => undefined,
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
