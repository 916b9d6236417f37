/** The lines of a watch as clients parse them: white space between two values is skipped. */
export async function* linesOfWatch(lines: AsyncIterable<string> | undefined): AsyncGenerator<string> {
  for await (const line of lines ?? []) if (line.trim() !== '') yield line;
}
