/** Between two lines about something that lasts. Milliseconds. */
const EVERY_MS = 2_000;

/**
 * Says what is being done, and for how long, when it lasts over two seconds. Call the result at its end.
 *
 * @param print receives one line
 */
export function reportWhileSlow(what: string, print: (line: string) => void): () => void {
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += EVERY_MS / 1_000;
    print(`${what}, ${seconds} s so far`);
  }, EVERY_MS);
  return () => clearInterval(timer);
}
