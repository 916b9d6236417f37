/** One gzip stream in parts. Decoders return the output of each part when the padding after it arrives. */
export interface GzipFrames {
  head(): Uint8Array;
  frame(output: Uint8Array): Uint8Array;
  /** At least so many bytes, which add nothing to the output. */
  padding(bytesMin: number): Uint8Array;
  end(): Uint8Array;
}
