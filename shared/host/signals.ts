export interface StopSignals {
  /** Resolves with the first signal. */
  readonly first: Promise<undefined>;
  stopping(): boolean;
}

/**
 * SIGINT and SIGTERM, from the beginning: a start that is interrupted is finished, then undone. A second signal ends
 * the process at once.
 */
export function listenForSignals(): StopSignals {
  let received = 0;
  const first = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        received += 1;
        if (received > 1) process.exit(130);
        resolve(undefined);
      });
    }
  });
  return { first, stopping: () => received > 0 };
}
