/** The tests of a change of a file. Stryker then runs those of them that reach the changed line. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import ts from 'typescript';

/** Suites of what a system of all rules does. They reach most files, by many imports. */
const SUITES = /^test\/(conformance|controllers)\//;
/** They run whole agents, or sockets and programs of one, and are near to the files of the agent only. */
const WHOLE = /^test\/agent\//;
const ADAPTERS = /^agent\/adapters\//;
const AGENT = /^agent\//;
/** Other test files outside of the noun's folder. What only more distant tests detect lacks a near test. */
const OTHERS_MAX = 6;
/** All of them need minutes, and a mutant that survives runs all it has. */
const SUITES_MAX = 12;

/**
 * Those that load `source`: of its function, noun or program, the nearest others, and suites. Suites of its name are
 * before nearer ones.
 */
export function nearTests(root: string, source: string, tests: readonly string[]): string[] {
  const loading = tests
    .map((test) => ({ test, distance: distancesFrom(root, test).get(source) ?? Number.POSITIVE_INFINITY }))
    .filter(({ distance }) => distance < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.distance - b.distance)
    .map(({ test }) => test);
  const isNear = (test: string): boolean => nounOf(test) === nounOf(source) || (AGENT.test(source) && WHOLE.test(test));
  const own = loading.filter(isNear);
  const noun = basename(nounOf(source));
  const isNamedAfter = (test: string): boolean => basename(test).startsWith(noun);
  const suites = loading
    .filter((test) => SUITES.test(test))
    .sort((a, b) => Number(isNamedAfter(b)) - Number(isNamedAfter(a)));
  const isDistant = (test: string): boolean => WHOLE.test(test) || (ADAPTERS.test(test) && !AGENT.test(source));
  const others = loading.filter((test) => !isNear(test) && !SUITES.test(test) && !isDistant(test));
  return [...own, ...others.slice(0, OTHERS_MAX), ...suites.slice(0, SUITES_MAX)];
}

const nounOf = (path: string): string => dirname(path).split('/').slice(0, 2).join('/');

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

/** Types are not loaded. */
const TYPES_ONLY = /^(import|export) type [^;]*;/gm;

function importsOf(root: string, file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8').replace(TYPES_ONLY, '');
  const { importedFiles } = ts.preProcessFile(text, true, true);
  return importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.') && name.endsWith('.ts'))
    .map((name) => relative(root, join(root, dirname(file), name)))
    .filter((name) => existsSync(join(root, name)));
}
