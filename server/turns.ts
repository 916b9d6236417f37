/**
 * Work that is done a few at a time; the rest waits in order of arrival.
 *
 * For lists: one thread reads them, so all of them together end no sooner when all have begun. But each that has begun
 * holds its objects, which then grow old in memory. Twenty lists of 500 Nodes at once needed 126 MB, and half of their CPU
 * was that of collecting garbage. What waits holds its request alone. The number of requests is bounded as before: by
 * connections and their streams (listener.ts).
 */
export type TakeTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function turns(atOnce: number): TakeTurn {
  let begun = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    // A turn that ends passes to the first that waits, so no later one overtakes it.
    if (begun < atOnce) begun += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) begun -= 1;
      else next();
    }
  };
}
