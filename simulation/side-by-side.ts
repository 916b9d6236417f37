/** Work on many things, a bounded number at a time, in order of the list. */
export async function sideBySide<T>(
  things: readonly T[],
  most: number,
  work: (thing: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < things.length) {
      const thing = things[next]!;
      next += 1;
      await work(thing);
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, things.length) }, worker));
}
