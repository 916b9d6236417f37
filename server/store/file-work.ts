/** What the thread beside the process does with the file: everything that syncs or reads all of it. */
export type FileWork =
  | { readonly kind: 'checkpoint' }
  /** Moves what is left of the log into the file, and begins the log from its start. No group may be in flight. */
  | { readonly kind: 'begin-log' }
  | { readonly kind: 'truncate' }
  /** `logBytesMax`: the log cannot begin anew while the copy is made. It fails when the log has grown by more. */
  | { readonly kind: 'backup'; readonly to: string; readonly logBytesMax: number }
  | { readonly kind: 'check' };

/** Pages of the log, and how many of them are in the file. */
export interface CheckpointResult {
  readonly logFrames: number;
  readonly checkpointedFrames: number;
}

/** Rows of each table. */
export type RowCounts = Readonly<Record<'health' | 'objects' | 'control' | 'pending', number>>;

export interface FileCheck {
  /** What `integrity_check` and the decoding of every item found; empty for a sound file. */
  readonly findings: readonly string[];
  readonly rows: RowCounts;
  readonly layoutVersion: number;
}

export interface WorkRequest {
  readonly id: number;
  readonly work: FileWork;
}

/** The result of a work, or why it failed. */
export type WorkAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failure: string; readonly errcode: number | undefined };
