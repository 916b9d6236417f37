/**
 * Would the linter refuse a mutant without its `await`? Then `npm run check` detects it, and no test has to. Biome infers
 * types from the whole project, so it runs in a copy of the sources.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apply, type Mutant } from './mutators.ts';

const RULE = 'nursery/noFloatingPromises';
const BIOME = join(import.meta.dirname, '../../node_modules/.bin/biome');

export class Lint {
  readonly #root: string;
  #copy: string | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  refuses(mutant: Mutant): boolean {
    if (mutant.mutator !== 'await removed') return false;
    this.#copy ??= copyOf(this.#root);
    const path = join(this.#copy, mutant.file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, apply(text, mutant));
    const { status, error } = spawnSync(BIOME, ['lint', `--only=${RULE}`, '--vcs-enabled=false', mutant.file], {
      cwd: this.#copy,
    });
    writeFileSync(path, text);
    if (error !== undefined) throw new Error('Biome did not start', { cause: error });
    return status !== 0;
  }

  close(): void {
    if (this.#copy !== undefined) rmSync(this.#copy, { recursive: true });
  }
}

function copyOf(root: string): string {
  // Biome ignores what is in node_modules.
  const copy = mkdtempSync(join(tmpdir(), 'mutants-lint-'));
  const sources = globSync('{*.json,*.ts,{shared,functions,agent}/**/*.ts}', { cwd: root });
  for (const file of sources) cpSync(join(root, file), join(copy, file));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
