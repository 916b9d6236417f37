/**
 * Bundles of handlers on disk, where the variable NODEKEEPER_BUNDLES names a directory. The tests set it: their
 * programs need the same bundles dozens of times, and each time esbuild needs five seconds of CPU. A deployment does
 * not: the key has the versions of dependencies, not their bytes.
 */
import { createHash, randomUUID } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { repositoryRoot } from './function-names.ts';

/** As esbuild returns it. */
export interface BundleFile {
  readonly path: string;
  readonly contents: Uint8Array;
  readonly text: string;
}

/** Everything that decides about the bytes. */
const SOURCES = [
  'functions/**/*.ts',
  'shared/**/*.{ts,mjs}',
  'cdk/lib/handler-bundles.ts',
  'cdk/lib/builtins/*',
  'package-lock.json',
  'tsconfig.json',
];
/** Those of other sources: of another branch, or of before a change. */
const OTHERS_MAX = 3;

let key: string | undefined;

/** Source maps have paths that depend on the directory of the project. */
function sourcesKey(): string {
  const hash = createHash('sha256').update(repositoryRoot);
  const exclude = (name: string): boolean => name.endsWith('.test.ts');
  for (const name of globSync(SOURCES, { cwd: repositoryRoot, exclude }).toSorted()) {
    const content = readFileSync(join(repositoryRoot, name));
    hash.update(`${name}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}

/** Undefined: none are kept. */
function directory(): string | undefined {
  const kept = process.env['NODEKEEPER_BUNDLES'];
  if (kept === undefined) return undefined;
  key ??= sourcesKey();
  return join(kept, key);
}

const fileOf = (folder: string, name: string): string =>
  join(folder, createHash('sha256').update(name).digest('hex').slice(0, 16));

/** @param name of the run of esbuild */
export function keptBundles(name: string): readonly BundleFile[] | undefined {
  const folder = directory();
  if (folder === undefined) return undefined;
  let bytes: Buffer;
  try {
    bytes = readFileSync(fileOf(folder, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const files = deserialize(bytes) as readonly Omit<BundleFile, 'text'>[];
  return files.map(({ path, contents }) => ({
    path,
    contents,
    get text() {
      return new TextDecoder().decode(contents);
    },
  }));
}

/** Two processes may do it at once: a file has all bytes from its first moment, and those of both are equal. */
export function keepBundles(name: string, files: readonly BundleFile[]): void {
  const folder = directory();
  if (folder === undefined) return;
  const isNew = mkdirSync(folder, { recursive: true }) !== undefined;
  const unfinished = join(folder, `${randomUUID()}.new`);
  writeFileSync(unfinished, serialize(files.map(({ path, contents }) => ({ path, contents }))));
  renameSync(unfinished, fileOf(folder, name));
  if (isNew) removeOthers(folder);
}

function removeOthers(own: string): void {
  const kept = dirname(own);
  const folders = readdirSync(kept)
    .map((name) => join(kept, name))
    .filter((folder) => folder !== own);
  const usedMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const newestFirst = folders.toSorted((one, other) => usedMs(other) - usedMs(one));
  for (const folder of newestFirst.slice(OTHERS_MAX)) rmSync(folder, { recursive: true, force: true });
}
