/**
 * The newest of some values, in a file for the next agent. One write at a time: what changes meanwhile is written once,
 * as it is then. Only the next agent needs the file, so a write that fails is logged, and the next one tries again.
 */
import type { Log } from '../../shared/observability/log.ts';
import { describeError } from './describe-error.ts';

export interface NewestInFileOptions<T> {
  readonly file: { readonly write: (value: T) => Promise<void> };
  readonly log: Pick<Log, 'warn'>;
  /** Logged once, until a write succeeds. */
  readonly failure: string;
}

export class NewestInFile<T> {
  readonly #options: NewestInFileOptions<T>;
  #newest: T | undefined;
  #next: T | undefined;
  #writing: Promise<void> | undefined;
  #canWrite = true;

  constructor(options: NewestInFileOptions<T>) {
    this.#options = options;
  }

  /** Resolves when it, or a newer one, was written, or cannot be. Never rejects. The same value is written once. */
  async keep(value: T): Promise<void> {
    if (value !== this.#newest) {
      this.#newest = value;
      this.#next = value;
    }
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { file, log, failure } = this.#options;
    while (this.#next !== undefined) {
      const value = this.#next;
      this.#next = undefined;
      try {
        await file.write(value);
        this.#canWrite = true;
      } catch (cause) {
        if (this.#canWrite) log.warn(failure, { why: describeError(cause) });
        this.#canWrite = false;
      }
    }
  }
}
