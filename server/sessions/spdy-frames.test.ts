import { expect, it } from 'vitest';
import { dataFrame, FRAME_BYTES_MAX, FrameReader, pingFrame, type SpdyFrame } from './spdy-frames.ts';

/** The frames in these bytes, which arrive in pieces of this size. */
function read(bytes: Buffer, pieceBytes: number): SpdyFrame[] {
  const reader = new FrameReader();
  const frames: SpdyFrame[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    frames.push(...reader.read(bytes.subarray(at, at + pieceBytes)));
  return frames;
}

it.each([1, 3, 7, 8, 9, 4_096, 1_000_000])('finds the same frames in pieces of %i bytes', (pieceBytes) => {
  const data = Buffer.alloc(10_000, 'x');
  const bytes = Buffer.concat([pingFrame(1), dataFrame(3, data), dataFrame(3, new Uint8Array(), true), pingFrame(3)]);
  expect(read(bytes, pieceBytes)).toEqual([
    { kind: 'ping', id: 1 },
    { kind: 'data', streamId: 3, isLast: false, data },
    { kind: 'data', streamId: 3, isLast: true, data: Buffer.alloc(0) },
    { kind: 'ping', id: 3 },
  ]);
});

it('keeps the bytes of an unfinished frame, and not the pieces in which they arrive', () => {
  const data = Buffer.from(Array.from({ length: 1_000 }, (_, index) => index % 251));
  const piece = Buffer.alloc(1);
  const reader = new FrameReader();
  const frames: SpdyFrame[] = [];
  for (const byte of dataFrame(1, data)) {
    // A piece that was kept would have the last byte.
    piece[0] = byte;
    frames.push(...reader.read(piece));
  }
  expect(frames).toEqual([{ kind: 'data', streamId: 1, isLast: false, data }]);
});

it('refuses a frame above the limit by its head', () => {
  const head = Buffer.concat([Buffer.from([0, 0, 0, 1, 0]), Buffer.from([0xff, 0xff, 0xff])]);
  expect(() => [...new FrameReader().read(head)]).toThrow(`may have ${FRAME_BYTES_MAX}`);
});
