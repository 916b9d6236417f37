import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const DECISIONS = new URL('../docs/decisions/', import.meta.url);

it('each decision has a number of its own, and its title begins with it', () => {
  const files = readdirSync(DECISIONS).filter((name) => /^\d{4}-/.test(name));
  const numbers = files.map((name) => name.slice(0, 4));
  expect(files.length).toBeGreaterThan(20);
  expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([]);
  for (const name of files) {
    expect(readFileSync(new URL(name, DECISIONS), 'utf8')).toMatch(new RegExp(`^# ${name.slice(0, 4)}\\b`));
  }
});
