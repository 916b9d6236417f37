/** Why a file cannot be opened as a store. The message says what to do. */
export type StoreOpenCode = 'in-use' | 'no-directory' | 'foreign' | 'newer-layout' | 'damaged' | 'unreadable';

export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError';
  readonly code: StoreOpenCode;
  /** The process that uses the file, where it is known. */
  readonly pid: number | undefined;
  constructor(code: StoreOpenCode, message: string, options: { cause?: unknown; pid?: number } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.pid = options.pid;
  }
}
