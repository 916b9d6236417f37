/** Lines over a connection, in both directions. Length, rate and what waits to be sent are bounded. */
import type { Duplex } from 'node:stream';
import type { SiteLine, SiteLineEvents } from '../../ports/site.ts';
import { SITE_LINE_BYTES_MAX } from '../../rules/site-message.ts';

/** A machine sends one line in 2 s, a relay some for each machine that is silent. */
const LINES_PER_SECOND_MAX = 100;
/** Beyond it the other end does not read. Bytes. */
const WAITING_BYTES_MAX = 65_536;
/** Wait for the other end to close as well. Milliseconds. */
const CLOSE_WAIT_MS = 500;
const LINE_END = 0x0a;

/** @param head bytes that were read after the upgrade */
export function openSiteLine(
  socket: Duplex,
  head: Buffer,
  address: string,
  accept: (line: SiteLine) => SiteLineEvents,
): SiteLine {
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const line: SiteLine = {
    address,
    send(text) {
      if (!socket.writable) return;
      socket.write(`${text}\n`);
      if (socket.writableLength > WAITING_BYTES_MAX) socket.destroy();
    },
    async close() {
      socket.end();
      const timer = setTimeout(() => socket.destroy(), CLOSE_WAIT_MS);
      await closed;
      clearTimeout(timer);
    },
  };
  const events = accept(line);
  void closed.then(() => events.closed());
  const split = lineSplitter((text) => events.received(text));
  // The reason of a broken connection is not needed: the other end is asked on another way.
  socket.on('error', () => socket.destroy());
  socket.on('end', () => socket.end());
  socket.on('data', (bytes: Buffer) => {
    if (!split(bytes)) socket.destroy();
  });
  if (head.length > 0) socket.unshift(head);
  return line;
}

/** Returns false once a line is too long, or lines are too many. */
function lineSplitter(received: (text: string) => void): (bytes: Buffer) => boolean {
  let rest = Buffer.alloc(0);
  let second = 0;
  let lines = 0;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let end = rest.indexOf(LINE_END); end >= 0; end = rest.indexOf(LINE_END)) {
      const nowSecond = Math.floor(performance.now() / 1_000);
      lines = nowSecond === second ? lines + 1 : 1;
      second = nowSecond;
      if (end > SITE_LINE_BYTES_MAX || lines > LINES_PER_SECOND_MAX) return false;
      received(rest.toString('utf8', 0, end));
      rest = rest.subarray(end + 1);
    }
    return rest.length <= SITE_LINE_BYTES_MAX;
  };
}
