/** Writing the response of a listener of HTTP/1.1 and HTTP/2. */
import { ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';

/** Part of a body that is written at a time: characters of a text, or bytes. */
const PART_LENGTH = 65_536;
/** A client that accepts nothing for this long is cut off: what is written for it stays in memory. Milliseconds. */
const DRAIN_MS = 30_000;

/** The listener's types know HTTP/2 only; a client of HTTP/1.1 gets the response object of that. */
export const asHttp1 = (response: Http2ServerResponse) =>
  response instanceof ServerResponse ? (response as ServerResponse) : undefined;

/** The rest of a request is not read: HTTP/1.1 needs its connection ended for that, HTTP/2 the stream alone. */
export function leaveRequest(request: Http2ServerRequest, response: Http2ServerResponse): void {
  if (asHttp1(response) === undefined) response.stream?.close();
  else request.destroy();
}

/** The client can then distinguish a broken answer from a complete one. */
export function breakOff(response: Http2ServerResponse): void {
  const http1 = asHttp1(response);
  if (http1 !== undefined) {
    http1.destroy();
    return;
  }
  // Its end alone would have the code of success. What is written, but not sent, is freed by `destroy`.
  response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  response.stream.destroy();
}

/**
 * Writes a long body except for its last part, and returns that. A client that accepts nothing is cut off: it
 * would hold the body. A long text is not encoded as a whole: V8 collects buffers outside of its heap only after 64 MB
 * of them, and the parts of a text are encoded and freed by Node itself.
 */
export async function lastPart(response: Http2ServerResponse, body: string | Buffer): Promise<string | Buffer> {
  if (body.length <= PART_LENGTH) return body;
  const part = (start: number, end?: number): string | Buffer =>
    typeof body === 'string' ? body.slice(start, end) : body.subarray(start, end);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  let start = 0;
  while (body.length - start > PART_LENGTH && !gone.signal.aborted) {
    // The two halves of a surrogate pair are one character of UTF-8.
    const isPair = typeof body === 'string' && isPairAt(body, start + PART_LENGTH - 1);
    const end = start + PART_LENGTH + (isPair ? 1 : 0);
    const isOpen = response.write(part(start, end)) || (await drained(response, gone.signal));
    if (!isOpen) {
      breakOff(response);
      return '';
    }
    start = end;
  }
  return part(start);
}

/** Whether this unit and the next one are a pair. A half without the other is a character of its own. */
const isPairAt = (text: string, at: number): boolean => (text.codePointAt(at) ?? 0) > 0xffff;

/**
 * Waits until the client has accepted what was written, or has left. @returns false when it accepts nothing for too
 * long
 */
export function drained(response: Http2ServerResponse, gone: AbortSignal): Promise<boolean> {
  // An HTTP/2 response that was closed never drains.
  if (gone.aborted) return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = (isDrained: boolean): void => {
      clearTimeout(timer);
      response.off('drain', onDrain);
      gone.removeEventListener('abort', onDrain);
      resolve(isDrained);
    };
    const onDrain = (): void => settle(true);
    const timer = setTimeout(() => settle(false), DRAIN_MS);
    response.once('drain', onDrain);
    gone.addEventListener('abort', onDrain, { once: true });
  });
}
