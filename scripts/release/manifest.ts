/** What package.json of this repository says, for the packages that are built from it. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

export const readManifest = (): Manifest => JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/** Writes package.json of a package, its licence and its README. */
export function writeManifest(directory: string, from: Manifest, fields: Readonly<Record<string, unknown>>): void {
  const { version, license, engines } = from;
  const manifest = { version, license, engines, type: 'module', ...fields };
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const name of ['LICENSE', 'README.md']) cpSync(join(ROOT, name), join(directory, name));
}
