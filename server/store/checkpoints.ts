/**
 * Keeps the write-ahead log small. A checkpoint in the other thread copies the log into the file while groups go on.
 * What they appended meanwhile is copied between two groups: only a log that is copied as a whole begins again.
 */
import type { FileWorker } from './file-worker.ts';
import type { GroupCommit } from './group-commit.ts';

/** A checkpoint after so many bytes of log, by an estimate. */
const CHECKPOINT_BYTES = 8 * 1_024 * 1_024;

export class Checkpoints {
  readonly counters = { done: 0, failed: 0, heldMs: 0, heldMsMax: 0 };
  readonly #worker: FileWorker;
  readonly #groups: () => GroupCommit;
  #appended = 0;
  #running: Promise<void> | undefined;

  constructor(worker: FileWorker, groups: () => GroupCommit) {
    this.#worker = worker;
    this.#groups = groups;
  }

  onAppended(bytes: number): void {
    this.#appended += bytes;
    if (this.#appended < CHECKPOINT_BYTES || this.#running !== undefined) return;
    this.#appended = 0;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** The one that runs has ended. */
  async ended(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      await this.#worker.do({ kind: 'checkpoint' });
      await this.#groups().between(async () => {
        const startedMs = performance.now();
        await this.#worker.do({ kind: 'begin-log' });
        const heldMs = performance.now() - startedMs;
        this.counters.heldMs += heldMs;
        this.counters.heldMsMax = Math.max(this.counters.heldMsMax, heldMs);
      });
      this.counters.done += 1;
    } catch {
      // The log stays valid and grows; the next one tries again. A disk that fails shows in the writes, too.
      this.counters.failed += 1;
    }
  }
}
