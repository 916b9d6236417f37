import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ALONE } from '../vitest.config.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

it('a test that replaces modules shares its worker with no other, which would get them too', () => {
  const tests = globSync('*/**/*.test.ts', { cwd: PROJECT, exclude: ['node_modules', 'test/fixtures'] });
  expect(tests.length).toBeGreaterThan(1_000);
  const replacing = tests.filter((test) => /^vi\.mock\(/m.test(readFileSync(`${PROJECT}/${test}`, 'utf8')));
  expect(replacing.filter((test) => !ALONE.includes(test))).toEqual([]);
  expect(replacing.length).toBeGreaterThan(3);
});

it('each of these tests exists', () => {
  expect(ALONE.filter((test) => !existsSync(`${PROJECT}/${test}`))).toEqual([]);
});
