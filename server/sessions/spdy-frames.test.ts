import { expect, it, onTestFinished, vi } from 'vitest';
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

it('copies the bytes of a frame twice at most, however small the pieces are in which it arrives', () => {
  const bytes = dataFrame(1, Buffer.alloc(FRAME_BYTES_MAX));
  const joined = vi.spyOn(Buffer, 'concat');
  onTestFinished(() => joined.mockRestore());
  expect(read(bytes, 16)).toHaveLength(1);
  const copied = joined.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
  expect(copied).toBeLessThan(2 * bytes.length);
});
