import { expect, it } from 'vitest';
import type { LogQuery } from '../../ports/pod-runtime.ts';
import { linesOf, textOfLines } from './log-lines.ts';

const LOG = [
  '2026-01-01T01:00:00.1+01:00 stdout F one',
  '2026-01-01T00:00:01.123456789Z stderr P tw',
  '2026-01-01T00:00:01.2Z stderr F o',
  '2026-01-01T00:00:02Z stdout F ',
  '',
].join('\n');

/** Whatever the sizes of the pieces are. */
async function read(more: Partial<LogQuery>, pieceBytes = LOG.length, log = LOG): Promise<string> {
  async function* pieces() {
    const bytes = Buffer.from(log);
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }
  const query = { podUid: 'u', container: 'c', previous: false, follow: false, timestamps: false, ...more };
  const read: Uint8Array[] = [];
  for await (const piece of linesOf(pieces(), query)) read.push(piece);
  return Buffer.concat(read).toString('utf8');
}

it.each([1, 7, 1_000])('returns the text of lines, in pieces of %i bytes', async (pieceBytes) => {
  expect(await read({}, pieceBytes)).toBe('one\ntwo\n\n');
  expect(await read({ timestamps: true }, pieceBytes)).toBe(
    '2026-01-01T00:00:00.100000000Z one\n2026-01-01T00:00:01.123456789Z two\n2026-01-01T00:00:02.000000000Z \n',
  );
  expect(await read({ sinceMs: Date.UTC(2026, 0, 1, 0, 0, 1) }, pieceBytes)).toBe('two\n\n');
  expect(await read({ limitBytes: 5 }, pieceBytes)).toBe('one\nt');
});

it('skips the rest of a line if its start was removed', async () => {
  expect(await read({}, 10, `cut\n${LOG}`)).toBe('\none\ntwo\n\n');
  expect(textOfLines(Buffer.from('2026-01-01T00:00:02Z stdout F last'))).toBe('last');
});
