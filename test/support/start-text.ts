import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a cold start of a function reads: its module, and the chunks that it imports statically. */
export function startText(folder: string, file = 'index.mjs', seen = new Set<string>()): string {
  if (seen.has(file)) return '';
  seen.add(file);
  const text = readFileSync(join(folder, file), 'utf8');
  const chunks = [...text.matchAll(/(?:from|import)"\.\/(chunk-[^"]+)"/g)].map(([, chunk]) => chunk!);
  return text + chunks.map((chunk) => startText(folder, chunk, seen)).join('');
}
