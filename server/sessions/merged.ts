/**
 * What several sources yield, as it comes, until all of them have ended. One that waits holds no other. Not by
 * Promise.race: a source that rests would keep what the others have yielded.
 */
export async function* merged<T>(sources: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  const ready: { readonly value: T; readonly resume: () => void }[] = [];
  let open = sources.length;
  let isOver = false;
  let wake: (() => void) | undefined;
  async function read(source: AsyncIterable<T>): Promise<void> {
    for await (const value of source) {
      await new Promise<void>((resume) => {
        ready.push({ value, resume });
        wake?.();
      });
      if (isOver) break;
    }
    open -= 1;
    wake?.();
  }
  for (const source of sources) void read(source);
  try {
    for (;;) {
      const next = ready.shift();
      if (next !== undefined) {
        next.resume();
        yield next.value;
      } else if (open === 0) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    isOver = true;
    for (const { resume } of ready) resume();
  }
}
