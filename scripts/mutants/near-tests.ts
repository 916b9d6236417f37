/** The tests that are most likely to detect a change of a file: those that the fewest imports separate from it. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

/** Test files per changed file, and imports in between. What only a test further away detects lacks a near test. */
const TESTS_MAX = 6;
const DISTANCE_MAX = 3;

/** Tests that load `source`: those of its folder, then by distance. Paths from `root`. */
export function nearTests(root: string, source: string, tests: readonly string[]): string[] {
  const distanceOf = (test: string): number => {
    const distance = distancesFrom(root, test).get(source) ?? Number.POSITIVE_INFINITY;
    return dirname(test) === dirname(source) ? distance / (DISTANCE_MAX + 1) : distance;
  };
  return tests
    .map((test) => ({ test, distance: distanceOf(test) }))
    .filter(({ distance }) => distance <= DISTANCE_MAX)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, TESTS_MAX)
    .map(({ test }) => test);
}

const imports = new Map<string, readonly string[]>();
const distances = new Map<string, ReadonlyMap<string, number>>();

/** How many imports away each file is from `test`. */
function distancesFrom(root: string, test: string): ReadonlyMap<string, number> {
  const known = distances.get(test);
  if (known !== undefined) return known;
  const found = new Map([[test, 0]]);
  for (const [file, distance] of found) {
    const next = imports.get(file) ?? importsOf(root, file);
    imports.set(file, next);
    for (const imported of next) if (!found.has(imported)) found.set(imported, distance + 1);
  }
  distances.set(test, found);
  return found;
}

function importsOf(root: string, file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'), true, true);
  return importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.') && name.endsWith('.ts'))
    .map((name) => relative(root, join(root, dirname(file), name)))
    .filter((name) => existsSync(join(root, name)));
}
