/**
 * Work that is done a few at a time. Identities that wait have turns, and the work of each is in order of arrival: one that asks for
 * much waits for its own work, and others do not.
 *
 * For lists: one thread reads them, so all of them together end no sooner when all have begun. But each that has begun
 * holds its objects, which then grow old in memory. Twenty lists of 500 Nodes at once needed 126 MB, and half of their CPU
 * was that of collecting garbage. What waits holds its request alone. The number of requests is bounded as before: by
 * connections and their streams (listener.ts).
 */
/** `of`: the one that the work is for. */
export type TakeTurn = <T>(of: string, work: () => Promise<T>) => Promise<T>;

export function turns(atOnce: number): TakeTurn {
  let begun = 0;
  /** In the order of the next turns. */
  const waiting = new Map<string, (() => void)[]>();
  function wait(of: string): Promise<void> {
    return new Promise((resolve) => {
      const own = waiting.get(of);
      if (own === undefined) waiting.set(of, [resolve]);
      else own.push(resolve);
    });
  }
  /** A turn that ends passes to one that waits, so no later one overtakes it. */
  function pass(): void {
    const [next] = waiting;
    if (next === undefined) {
      begun -= 1;
      return;
    }
    const [of, own] = next;
    waiting.delete(of);
    const begin = own.shift();
    if (own.length > 0) waiting.set(of, own);
    begin?.();
  }
  return async (of, work) => {
    if (begun < atOnce) begun += 1;
    else await wait(of);
    try {
      return await work();
    } finally {
      pass();
    }
  };
}
