/** The newest state on disk, and the one before it. */
export interface StateGenerations {
  /**
   * Newest first: a text as it was written, or why it cannot be read, such as that it is not complete. Without a write
   * there are none.
   */
  read(): Promise<readonly GenerationRead[]>;
  /** Durable when this resolves. A crash leaves at least one of the two. @throws Error of the file system */
  write(text: string): Promise<void>;
  /** Removes both. @throws Error of the file system */
  remove(): Promise<void>;
}

export type GenerationRead =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'failed'; readonly why: string };
