import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { deviations, type LeftOut, leftOut } from './deviations.ts';

const page = readFileSync(new URL('../../docs/deviations.md', import.meta.url), 'utf8');
const rowsOf = (text: string): string[] =>
  text.split('\n').filter((line) => /^\| (agent\/)?[A-Z]{2}-\d{2}[ ,]/.test(line));

/** Cases with the same cells share a row, at the place of the first one. */
function expectedRows<T extends LeftOut>(cases: readonly T[], cellsOf: (each: T) => string): string[] {
  const byCells = Map.groupBy(cases, cellsOf);
  return [...byCells].map(([cells, each]) => `| ${each.map(({ id }) => id).join(', ')} | ${cells} |`);
}

const [before = '', after = ''] = page.split('## Cases of upstream that are left out');

describe('docs/deviations.md', () => {
  it('names every case that ends differently here, with its rule and reason, and no other', () => {
    expect(rowsOf(before)).toEqual(expectedRows(deviations, ({ deviation, reason }) => `${deviation} | ${reason}`));
  });

  it('explains every rule that a case rests on', () => {
    const rules = new Set(deviations.map(({ deviation }) => deviation).filter((rule) => /^D\d+$/.test(rule)));
    for (const rule of rules) expect(page).toContain(`- **${rule}** `);
  });

  it('names every case that is left out, with its reason, and no other', () => {
    expect(rowsOf(after)).toEqual(expectedRows(leftOut, ({ reason }) => reason));
  });

  it.each([
    ['deviations', deviations],
    ['cases left out', leftOut],
  ])('is sorted by case: %s', (_name, cases) => {
    const ids = cases.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
  });
});
