/** Plants unused code in a small project, and runs the commands of `npm run reach` there. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PLANTED: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify({
    scripts: { bench: 'node bench/run.ts', test: 'vitest run' },
    dependencies: { yaml: '2.0.0', zod: '4.0.0' },
    devDependencies: { vitest: '5.0.0' },
  }),
  'console/page/main.ts': "import 'yaml';\nimport { used } from '../../shared/used.ts';\nused();\n",
  'shared/used.ts': [
    'export const used = () => inFile();',
    'export const inFile = () => 1;',
    'export const onlyTested = () => 2;',
    'export const onlyForTools = () => 3;',
    '/** @tools the benchmark needs it */',
    'export const namedForTools = () => 4;',
    'export type UnusedType = string;',
  ].join('\n'),
  'shared/used.test.ts': "import { inFile, onlyTested } from './used.ts';\ninFile();\nonlyTested();\n",
  'shared/only-tested.ts': 'export const tested = 1;\n',
  'shared/only-tested.test.ts': "import { tested } from './only-tested.ts';\ntested.toFixed();\n",
  'bench/run.ts':
    "import { namedForTools, onlyForTools } from '../shared/used.ts';\nnamedForTools();\nonlyForTools();\n",
  'bench/unused.ts': 'export const measured = 1;\n',
};

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reach-'));
  for (const [path, text] of Object.entries(PLANTED)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  cpSync(join(ROOT, 'knip.jsonc'), join(folder, 'knip.jsonc'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The commands of `npm run reach`, the words of each. */
function commands(): string[][] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { reach: string } };
  return scripts.reach.split(' && ').map((command) => command.split(' '));
}

/** What one command finds, as `kind path` or `kind path#name`. */
function findings(words: readonly string[]): string[] {
  const knip = join(ROOT, 'node_modules/knip/bin/knip.js');
  const { stdout, stderr } = spawnSync(process.execPath, [knip, ...words, '--reporter', 'json'], { cwd: folder });
  const { issues } = JSON.parse(String(stdout) || String(stderr)) as {
    issues: (Record<'files' | 'exports' | 'types' | 'dependencies', { name: string }[]> & { file: string })[];
  };
  return issues
    .flatMap(({ file, ...found }) => [
      ...found.files.map(() => `file ${file}`),
      ...found.exports.map(({ name }) => `export ${file}#${name}`),
      ...found.types.map(({ name }) => `type ${file}#${name}`),
      ...found.dependencies.map(({ name }) => `dependency ${name}`),
    ])
    .sort();
}

it('reports what only tests or tools reach, except what is tagged for tools', () => {
  const [[program, ...words] = []] = commands();
  expect(program).toBe('knip');
  expect(findings(words)).toEqual([
    'dependency zod',
    'export shared/used.ts#onlyForTools',
    'export shared/used.ts#onlyTested',
    'file shared/only-tested.ts',
    'type shared/used.ts#UnusedType',
  ]);
});

it('reports what nothing reaches, tests and tools included', () => {
  const [, [program, ...words] = []] = commands();
  expect(program).toBe('knip');
  expect(findings(words)).toEqual(['dependency zod', 'file bench/unused.ts', 'type shared/used.ts#UnusedType']);
});
