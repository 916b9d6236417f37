import type { Writable } from 'node:stream';

/** Writes bytes. Resolves when more may be written, or nothing more is read. */
export async function written(stream: Writable, bytes: Uint8Array): Promise<void> {
  if (!stream.writable || stream.write(bytes)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('drain', done);
    stream.on('close', done);
  });
}
