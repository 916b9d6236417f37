/**
 * The npm package `@nodekeeper/cdk` for other CDK apps: the construct as JavaScript with type declarations, and the
 * bundled handlers. It needs neither esbuild nor the sources of the functions.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeBundle } from '../../cdk/lib/bundle.ts';
import { functionList } from '../../functions/function-list.ts';
import { type Manifest, ROOT, writeManifest } from './manifest.ts';

/** Libraries that the compiled construct imports. Those of the app itself are peers: two copies do not mix. */
const DEPENDENCIES = ['yaml', 'zod'];
const PEERS = ['aws-cdk-lib', 'constructs'];

/**
 * Builds it in a directory, which is emptied first.
 *
 * @throws Error with the diagnostics of the compiler
 */
export function buildConstruct(directory: string, manifest: Manifest): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  compile(directory);
  for (const { name } of functionList) writeBundle(name, join(directory, 'handlers', name));
  const versionsOf = (names: readonly string[], from: Readonly<Record<string, string>>) =>
    Object.fromEntries(names.map((name) => [name, from[name]]));
  writeManifest(directory, manifest, {
    name: '@nodekeeper/cdk',
    description: 'A construct that deploys Nodekeeper, the Kubernetes node controller without a control plane to run',
    exports: { '.': { types: './cdk/index.d.ts', default: './cdk/index.js' } },
    files: ['cdk', 'functions', 'shared', 'handlers'],
    dependencies: versionsOf(DEPENDENCIES, manifest.dependencies),
    peerDependencies: versionsOf(PEERS, manifest.devDependencies),
    keywords: ['aws-cdk', 'kubernetes', 'node-controller'],
  });
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
