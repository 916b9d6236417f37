/**
 * npm run package [-- DIRECTORY]
 *
 * Builds the package that other CDK apps install: the construct as JavaScript with type declarations, and the bundled
 * handlers. It needs neither esbuild nor the sources of the functions.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeBundle } from '../cdk/lib/bundle.ts';
import { functionList } from '../functions/function-list.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIRECTORY = join('dist', 'construct');
/** Libraries that the compiled construct imports. Those of the app itself are peers: two copies do not mix. */
const DEPENDENCIES = ['yaml', 'zod'];
const PEERS = ['aws-cdk-lib', 'constructs'];

interface Manifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: object;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** @throws Error with the diagnostics of the compiler */
function buildPackage(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  compile(directory);
  for (const { name } of functionList) writeBundle(name, join(directory, 'handlers', name));
  const { version, description, license, engines, dependencies, devDependencies } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  ) as Manifest;
  const versionsOf = (names: readonly string[], from: Readonly<Record<string, string>>) =>
    Object.fromEntries(names.map((name) => [name, from[name]]));
  const manifest = {
    name: 'nodekeeper',
    ...{ version, description, license, engines },
    type: 'module',
    exports: { '.': { types: './cdk/index.d.ts', default: './cdk/index.js' } },
    files: ['cdk', 'functions', 'shared', 'handlers'],
    dependencies: versionsOf(DEPENDENCIES, dependencies),
    peerDependencies: versionsOf(PEERS, devDependencies),
    keywords: ['aws-cdk', 'kubernetes', 'node-controller'],
  };
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const name of ['LICENSE', 'README.md']) cpSync(join(ROOT, name), join(directory, name));
}

function compile(directory: string): void {
  const project = join(directory, 'tsconfig.json');
  const compilerOptions = {
    noEmit: false,
    allowImportingTsExtensions: false,
    rewriteRelativeImportExtensions: true,
    declaration: true,
    rootDir: ROOT,
    outDir: directory,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  };
  const extended = { extends: join(ROOT, 'tsconfig.json'), include: [], files: [join(ROOT, 'cdk/index.ts')] };
  writeFileSync(project, JSON.stringify({ ...extended, compilerOptions }));
  const compiler = join(ROOT, 'node_modules/typescript-7/bin/tsc');
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, '-p', project], { encoding: 'utf8' });
  rmSync(project);
  if (status !== 0) throw new Error(`${stdout}${stderr}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [word = join(ROOT, DIRECTORY)] = process.argv.slice(2);
  const directory = resolve(word);
  // The folder is emptied first: an option is none.
  if (word.startsWith('-')) {
    console.log('Usage: npm run package [-- DIRECTORY]');
    process.exitCode = word === '--help' ? 0 : 2;
  } else {
    buildPackage(directory);
    console.log(directory);
  }
}
