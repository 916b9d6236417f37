/** Node.js for machines, from the packages of npm that carry its releases. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './manifest.ts';

export type Architecture = 'x64' | 'arm64';
export const ARCHITECTURES: readonly Architecture[] = ['x64', 'arm64'];

export const NODE_VERSION = '24.21.0';
/** Of the archives of npm. */
const INTEGRITY: Readonly<Record<Architecture, string>> = {
  x64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  arm64: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
};
const KEPT = join(ROOT, 'node_modules/.cache/nodekeeper/node-binaries');

/** Folder with `bin/node` and `LICENSE`, downloaded once. @throws Error for other bytes than those of the release */
export function nodeFolder(architecture: Architecture): string {
  const name = `node-linux-${architecture}`;
  const folder = join(KEPT, `${name}-${NODE_VERSION}`);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const pack = ['pack', '--silent', '--pack-destination', unfinished, `${name}@${NODE_VERSION}`];
  const archive = join(unfinished, execFileSync('npm', pack, { cwd: unfinished, encoding: 'utf8' }).trim());
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (found !== INTEGRITY[architecture]) throw new Error(`${name}@${NODE_VERSION} has other bytes: ${found}`);
  const members = ['package/bin/node', 'package/LICENSE'];
  execFileSync('tar', ['-xzf', archive, '-C', unfinished, '--strip-components=1', ...members]);
  rmSync(archive);
  renameSync(unfinished, folder);
  return folder;
}
