/** What the agent needs of the machine to install a release. */

export interface UpdateSource {
  /**
   * The bytes at a URL. Rejects when there are more than `bytesMax`, when the server fails, and when the time is over.
   */
  download(url: string, limits: { readonly bytesMax: number; readonly signal: AbortSignal }): AsyncIterable<Uint8Array>;
  /** Whether the statement is signed with the key that this machine was installed with. `signature` is base64. */
  isSigned(statement: string, signature: string): boolean;
  /** Computes a SHA-256, as lower-case hex, of bytes that pass. */
  digest(): { update(bytes: Uint8Array): void; hex(): string };
  /** Runs the stored file once, to print its version. Rejects with what it printed. */
  versionOf(fileName: string): Promise<string>;
}
