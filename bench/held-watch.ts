/** A watch over HTTP/2 that notices which numbered objects its events are about. */
import type { ClientHttp2Session } from 'node:http2';
import { constants } from 'node:http2';

/** The number of an object, a label or a key of its data, is found in the bytes of a stream, without parsing them. */
const MARK = Buffer.from('"number":"');

export interface HeldWatchCalls {
  readonly answered: (isAccepted: boolean) => void;
  readonly received: (number: number, atMs: number) => void;
}

export function holdWatch(
  session: ClientHttp2Session,
  { path, token }: { readonly path: string; readonly token: string },
  { answered, received }: HeldWatchCalls,
): void {
  const stream = session.request({ ':path': `${path}?watch=1`, authorization: `Bearer ${token}` });
  stream.on('response', (headers) => answered(headers[':status'] === constants.HTTP_STATUS_OK));
  stream.on('error', () => {});
  let partial: Buffer | undefined;
  stream.on('data', (chunk: Buffer) => {
    const nowMs = performance.now();
    const bytes = partial === undefined ? chunk : Buffer.concat([partial, chunk]);
    const end = bytes.lastIndexOf('\n') + 1;
    partial = end === bytes.length ? undefined : bytes.subarray(end);
    const whole = bytes.subarray(0, end);
    for (let at = whole.indexOf(MARK); at !== -1; at = whole.indexOf(MARK, at)) {
      at += MARK.length;
      received(Number.parseInt(whole.toString('latin1', at, at + 12), 10), nowMs);
    }
  });
}
