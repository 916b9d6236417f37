import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Figures } from './benchmark.ts';
import { walks } from './walks.ts';

/** Rows of the table in docs/quality.md: the most files and folders that a walk may enter. */
function statedWalks(): ReadonlyMap<string, { readonly files: number; readonly folders: number }> {
  const page = readFileSync(new URL('../docs/quality.md', import.meta.url), 'utf8');
  const section = page.split('## How far a piece of work walks')[1]?.split('\n## ')[0] ?? '';
  const rows = section.matchAll(/^\| (.+?) \| (\d+) \| (\d+) \|$/gm);
  return new Map([...rows].map(([, walk = '', files, folders]) => [walk, { files: +files!, folders: +folders! }]));
}

it('no walk enters more files or folders than docs/quality.md states', { timeout: 120_000 }, async () => {
  const measured: Figures[] = [];
  await walks.run((figures) => measured.push(figures), []);
  const stated = statedWalks();
  expect(measured.map(({ walk }) => walk)).toEqual([...stated.keys()]);
  for (const { walk, files, folders } of measured) {
    const most = stated.get(String(walk))!;
    expect({ walk, files, isMore: Number(files) > most.files }).toEqual({ walk, files, isMore: false });
    expect({ walk, folders, isMore: Number(folders) > most.folders }).toEqual({ walk, folders, isMore: false });
  }
});
