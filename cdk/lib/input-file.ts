import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** @returns `name`: as faults show it, relative where that is shorter. @throws the file system's error */
export function readInputFile(path: string): { readonly text: string; readonly name: string } {
  const shown = relative(process.cwd(), path);
  return { text: readFileSync(path, 'utf8'), name: shown.startsWith('..') ? path : shown };
}
