/** The tests that may detect a mutant: those that reach its function, nearest first. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';
import type { Mutant } from './mutators.ts';
import { TestProcess } from './test-process.ts';

/** A test file that needs longer as it is runs for no mutant: it would cost more than it detects. */
const TEST_LIMIT_MS = 20_000;

interface Reach {
  readonly tookMs: number;
  /** `file:position` of each function that was called. */
  readonly reached: readonly string[];
}

/** How many imports away each file is from `test`. */
export function distancesFrom(
  root: string,
  test: string,
  imports: Map<string, readonly string[]>,
): Map<string, number> {
  const distances = new Map([[test, 0]]);
  for (const [file, distance] of distances) {
    let next = imports.get(file);
    if (next === undefined) {
      next = importsOf(root, file);
      imports.set(file, next);
    }
    for (const imported of next) if (!distances.has(imported)) distances.set(imported, distance + 1);
  }
  return distances;
}

function importsOf(root: string, file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'), true, true);
  return importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.') && name.endsWith('.ts'))
    .map((name) => relative(root, join(root, dirname(file), name)))
    .filter((name) => existsSync(join(root, name)));
}

export class RelatedTests {
  readonly #tests: Map<string, Reach & { distances: Map<string, number> }>;
  /** How often a test file detected a mutant of a file: it will detect the next one too. */
  readonly #kills = new Map<string, number>();

  private constructor(tests: Map<string, Reach & { distances: Map<string, number> }>) {
    this.#tests = tests;
  }

  /** Runs each test once, with probes in `sources`. What a test reached is remembered until it or a source of it changes. */
  static async find(
    root: string,
    sources: readonly string[],
    tests: readonly string[],
    log: (line: string) => void,
  ): Promise<RelatedTests> {
    const probed = new Set(sources);
    const cache = join(root, 'node_modules/.cache/mutants/reach');
    mkdirSync(cache, { recursive: true });
    const output = mkdtempSync(join(cache, '..', 'run-'));
    const process = new TestProcess(root, {
      MUTANTS_PROBED: JSON.stringify([...probed]),
      MUTANTS_REACHED_DIRECTORY: output,
    });
    const imports = new Map<string, readonly string[]>();
    const found = new Map<string, Reach & { distances: Map<string, number> }>();
    try {
      for (const test of tests) {
        const distances = distancesFrom(root, test, imports);
        const loaded = [...distances.keys()].filter((file) => file === test || probed.has(file));
        if (loaded.length < 2) continue;
        const texts = loaded.map((file) => `${file}\n${readFileSync(join(root, file), 'utf8')}`);
        const file = join(cache, `${hashOf(texts)}.json`);
        const reach = existsSync(file) ? read(file) : await probe(process, test, output);
        if (reach === undefined) {
          log(`left out: ${test} fails or takes longer than ${TEST_LIMIT_MS / 1_000} s without any mutant`);
          continue;
        }
        if (!existsSync(file)) {
          // Renamed: a run beside this one reads all of it or nothing.
          const part = join(output, 'reach.part');
          writeFileSync(part, JSON.stringify(reach));
          renameSync(part, file);
        }
        found.set(test, { ...reach, distances });
      }
    } finally {
      process.close();
      rmSync(output, { recursive: true, force: true });
    }
    return new RelatedTests(found);
  }

  /** Test files that reach the mutant, in the order in which they should be asked, with their usual duration. */
  of(mutant: Mutant): { readonly test: string; readonly tookMs: number }[] {
    const key = `${mutant.file}:${mutant.functionStart}`;
    const beside = mutant.file.replace(/\.ts$/, '.test.ts');
    return [...this.#tests]
      .filter(([, { reached }]) => reached.includes(key))
      .map(([test, { tookMs, distances, reached }]) => ({
        test,
        tookMs,
        // Each detected mutant before is worth a second and a half, each import in between costs half a second. The more
        // of the file's functions a test reaches, the more it is about this file.
        rank:
          (test === beside ? -5_000 : 0) +
          tookMs +
          500 * (distances.get(mutant.file) ?? 0) -
          500 * reached.filter((each) => each.startsWith(`${mutant.file}:`)).length -
          1_500 * Math.min(5, this.#kills.get(`${test} ${mutant.file}`) ?? 0),
      }))
      .sort((a, b) => a.rank - b.rank);
  }

  detected(test: string, { file }: Mutant): void {
    const key = `${test} ${file}`;
    this.#kills.set(key, (this.#kills.get(key) ?? 0) + 1);
  }
}

async function probe(process: TestProcess, test: string, output: string): Promise<Reach | undefined> {
  const answer = await process.run({ test }, TEST_LIMIT_MS);
  const reached: string[] = [];
  for (const name of readdirSync(output)) {
    const file = join(output, name);
    reached.push(...(JSON.parse(readFileSync(file, 'utf8')) as { reached: string[] }).reached);
    rmSync(file);
  }
  return answer === 'timeout' || !answer.passed ? undefined : { tookMs: answer.tookMs, reached };
}

const read = (file: string): Reach => JSON.parse(readFileSync(file, 'utf8')) as Reach;
const hashOf = (parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 32);
