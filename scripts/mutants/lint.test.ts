import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Lint } from './lint.ts';
import { mutantsOf } from './mutators.ts';

const root = mkdtempSync(join(tmpdir(), 'lint-test-'));
const lint = new Lint(root);
afterAll(() => {
  lint.close();
  rmSync(root, { recursive: true });
});

it('refuses a call without an await, and no other mutant', () => {
  const text = `async function store(): Promise<number> {
  return 1;
}
export async function run(isLate: boolean): Promise<number> {
  if (!isLate) await store();
  const stored = await store();
  return stored;
}
`;
  writeFileSync(join(root, 'run.ts'), text);
  const rules = { nursery: { noFloatingPromises: 'error' } };
  writeFileSync(join(root, 'biome.json'), JSON.stringify({ linter: { rules } }));
  const refused = mutantsOf('run.ts', text).filter((mutant) => lint.refuses(mutant));
  expect(refused.map(({ mutator, line }) => `${line} ${mutator}`)).toEqual(['5 await removed']);
});
