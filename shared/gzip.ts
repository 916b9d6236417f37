import { constants, gunzipSync, gzipSync } from 'node:zlib';

/** Compresses a text. The fastest level is enough: it reduces Kubernetes JSON to a tenth. */
export const gzip = (text: string | Uint8Array): Uint8Array => gzipSync(text, { level: constants.Z_BEST_SPEED });

/** Decompresses what a client sent. undefined: malformed, or longer than `bytesMax`. */
export function gunzip(bytes: Uint8Array, bytesMax: number): Uint8Array | undefined {
  try {
    return gunzipSync(bytes, { maxOutputLength: bytesMax });
  } catch {
    return undefined;
  }
}
