import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { deviations } from './deviations.ts';

const page = readFileSync(new URL('../../docs/deviations.md', import.meta.url), 'utf8');
const rows = page.split('\n').filter((line) => /^\| (agent\/)?[A-Z]{2}-\d{2} \|/.test(line));

describe('docs/deviations.md', () => {
  it('names every case that ends differently here, with its rule and reason, and no other', () => {
    expect(rows).toEqual(deviations.map(({ id, deviation, reason }) => `| ${id} | ${deviation} | ${reason} |`));
  });

  it('explains every rule that a case rests on', () => {
    const rules = new Set(deviations.map(({ deviation }) => deviation).filter((rule) => /^D\d+$/.test(rule)));
    for (const rule of rules) expect(page).toContain(`- **${rule}** `);
  });

  it('is sorted by case', () => {
    const ids = deviations.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
  });
});
