/**
 * A part of a page that a test writes: what is between `<!-- NAME -->` and `<!-- end -->`. With `WRITE_DOCS=1` it is
 * written; without, it must be there.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';

const END = '<!-- end -->';

export function expectDocumented(page: string, name: string, part: string): void {
  const path = join(repositoryRoot, page);
  const text = readFileSync(path, 'utf8');
  const start = `<!-- ${name} -->\n`;
  const from = text.indexOf(start) + start.length;
  const end = text.indexOf(END, from);
  if (from < start.length || end < 0) throw new Error(`${page} has no part ${start}…${END}`);
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(path, `${text.slice(0, from)}\n${part}\n${text.slice(end)}`);
  else expect(text.slice(from, end)).toBe(`\n${part}\n`);
}

/** A table of Markdown. */
export const markdownTable = (rows: readonly (readonly string[])[]): string =>
  rows
    .flatMap((row, index) => {
      const line = `| ${row.join(' | ')} |\n`;
      return index === 0 ? [line, `|${'---|'.repeat(row.length)}\n`] : [line];
    })
    .join('');
