import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { constants, createGzip, gunzipSync, gzipSync } from 'node:zlib';
import { textParts } from './text.ts';

/** The fastest level is enough: it reduces Kubernetes JSON to a tenth. */
const FAST = { level: constants.Z_BEST_SPEED };

/** Compresses a text. */
export const gzip = (text: string | Uint8Array): Uint8Array => gzipSync(text, FAST);

/** What one turn of the event loop encodes. Characters. */
const TURN_CHARACTERS = 262_144;

/** The same in another thread, for a process that serves others meanwhile. */
export const gzipInThread = (text: string): Promise<Uint8Array> =>
  buffer(Readable.from(textParts(text, TURN_CHARACTERS)).pipe(createGzip(FAST)));

/** Decompresses what a client sent. undefined: malformed, or longer than `bytesMax`. */
export function gunzip(bytes: Uint8Array, bytesMax: number): Uint8Array | undefined {
  try {
    return gunzipSync(bytes, { maxOutputLength: bytesMax });
  } catch {
    return undefined;
  }
}
