/**
 * A write to the data directory in the background: no request waits for it. A disk that is full, read-only or failing
 * must not end the process: the write is tried again until it succeeds, and the fault is reported once.
 */
export interface DelayedWrite {
  /** Writes within the delay. Calls until then are one write. */
  soon(): void;
  now(): void;
  /** A write that is due, once; none afterwards. */
  end(): void;
}

export interface DelayedWriteOptions {
  /** The name of the file in reports. */
  readonly file: string;
  /** Between a change and its write, and between attempts. Milliseconds. */
  readonly delayMs: number;
  /** @throws the fault of the disk */
  write(): void;
  onTrouble(message: string): void;
}

export function delayedWrite({ file, delayMs, write, onTrouble }: DelayedWriteOptions): DelayedWrite {
  let timer: NodeJS.Timeout | undefined;
  let failing = false;
  let ended = false;

  function soon(): void {
    if (!ended) timer ??= setTimeout(now, delayMs).unref();
  }

  function now(): void {
    clearTimeout(timer);
    timer = undefined;
    try {
      write();
    } catch (error) {
      if (!isDiskFault(error)) throw error;
      if (!failing)
        onTrouble(`${file} cannot be written, it is tried again every ${delayMs / 1_000} s: ${error.message}`);
      failing = true;
      soon();
      return;
    }
    if (failing) onTrouble(`${file} is written again`);
    failing = false;
  }

  return {
    soon,
    now,
    end() {
      const isDue = timer !== undefined;
      ended = true;
      if (isDue) now();
    },
  };
}

/** An error of a system call; others are our own. */
export const isDiskFault = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
