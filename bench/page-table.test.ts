import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pageTable } from './page-table.ts';

const docs = (page: string): string => readFileSync(new URL(`../docs/${page}`, import.meta.url), 'utf8');
const lines = docs('console.md').split('\n');
const head = lines.indexOf('|  | 500 nodes | 5,000 nodes |');
const documented = lines.slice(head, lines.indexOf('', head));

it('is the table of docs/console.md', () => {
  const figures = {
    ...{ pods: 20_000, firstPaintSeconds: 1, allNodesSeconds: 2, nowMsPerSecond: 3, nodesMsPerSecond: 4 },
    ...{ podsMsPerSecond: 5, updateP50Ms: 6, updateP99Ms: 7, heapMegabytes: 8 },
  };
  const numbered = documented.map((line, index) =>
    index < 2 ? line : line.replaceAll(/(?<=\| )[\d.]+/g, `${index - 1}`),
  );
  expect(pageTable([500, 5_000].map((nodes) => ({ ...figures, nodes }))).split('\n')).toEqual(numbered);
});

it('has the figures of docs/quality.md for 5,000 nodes', () => {
  const shown = documented.filter((line) => /^\| (first paint|an update, p99|JavaScript heap)/.test(line));
  const size = /The page has (\d+ KB)/.exec(docs('console.md'))?.[1];
  const figures = [...shown.map((line) => line.split(' | ')[2]?.slice(0, -2)), size].join('; ');
  expect(docs('quality.md')).toContain(`| ${figures} ([table](console.md#data-and-its-age)) |`);
});
