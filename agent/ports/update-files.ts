/**
 * The directory of installed agents, as single steps: a power cut may happen between any two of them. Names have no
 * slash. A written file is durable after `sync`, a changed name after `syncNames`.
 */
export interface UpdateFiles {
  /** Undefined if there is none. */
  readText(name: string): Promise<string | undefined>;
  /** Target of a symbolic link; undefined if there is none. */
  readLink(name: string): Promise<string | undefined>;
  names(): Promise<readonly string[]>;
  /** Creates or truncates. */
  create(name: string): Promise<UpdateFile>;
  link(name: string, target: string): Promise<void>;
  /** Replaces `to` atomically. */
  rename(from: string, to: string): Promise<void>;
  /** Nothing happens if there is none. */
  remove(name: string): Promise<void>;
  syncNames(): Promise<void>;
}

export interface UpdateFile {
  write(bytes: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}
