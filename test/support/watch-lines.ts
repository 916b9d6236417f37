/** The lines of a watch as clients parse them: white space between two values is skipped. */
export async function* linesOfWatch(parts: AsyncIterable<string> | undefined): AsyncGenerator<string> {
  for await (const part of parts ?? []) yield* part.split('\n').filter((line) => line.trim() !== '');
}
