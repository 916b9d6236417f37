/** The clients have as many sockets: a request that waits for a socket uses up its timeout. */
const READS_AT_ONCE_MAX = 32;

/** Reads all parts, at most READS_AT_ONCE_MAX at the same time. Rejects with the first fault. */
export async function readAll<Part>(parts: readonly Part[], read: (part: Part) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < parts.length) {
      const part = parts[next]!;
      next += 1;
      await read(part);
    }
  };
  await Promise.all(Array.from({ length: Math.min(parts.length, READS_AT_ONCE_MAX) }, work));
}
