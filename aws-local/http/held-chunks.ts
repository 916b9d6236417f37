/**
 * What the front of a function URL does with small chunks of a stream. AWS does not document it, and reports differ
 * (shared/watches/stream-form.ts), so local mode can do each.
 */

/** Bytes that must follow a chunk until it is delivered. The head is delivered with the first chunk. */
export const CHUNK_HOLDS = {
  none: 0,
  'one-chunk': 1,
  '16-kb': 16_384,
  '100-kb': 102_400,
} as const;

export type ChunkHold = keyof typeof CHUNK_HOLDS;

export const CHUNK_HOLD_DEFAULT: ChunkHold = 'one-chunk';

export const isChunkHold = (text: string): text is ChunkHold => Object.hasOwn(CHUNK_HOLDS, text);

/** The chunks of one stream that wait for more. */
export class HeldChunks {
  readonly #holdBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(hold: ChunkHold) {
    this.#holdBytes = CHUNK_HOLDS[hold];
  }

  /** The chunks that are delivered now, the oldest first. */
  add(chunk: Uint8Array): readonly Uint8Array[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const delivered: Uint8Array[] = [];
    for (let first = this.#chunks[0]; first !== undefined; first = this.#chunks[0]) {
      if (this.#bytes - first.length < this.#holdBytes) break;
      this.#chunks.shift();
      this.#bytes -= first.length;
      delivered.push(first);
    }
    return delivered;
  }

  /** At the end of the stream. */
  rest(): readonly Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    return chunks;
  }
}
