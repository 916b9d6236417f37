/** `npm run start:aws` in a tree that was just cloned, with a umask of 022. README's commands: readme.test.ts. */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../support/until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const NOT_COPIED = ['.git', '.nodekeeper', '.nodekeeper-aws', 'docs', 'node_modules', 'test'];

const DATA = '.nodekeeper-aws';

it('serves a cluster from a fresh clone, and keeps its data for its owner', async () => {
  const tree = mkdtempSync(join(tmpdir(), 'nodekeeper-clone-'));
  onTestFinished(() => rmSync(tree, { recursive: true, force: true }));
  for (const entry of readdirSync(ROOT).filter((name) => !NOT_COPIED.includes(name))) {
    cpSync(join(ROOT, entry), join(tree, entry), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  const args = [join(tree, 'aws-local/bin/start.mjs'), '--port', '0', '--no-console'];
  const child = spawn(process.execPath, args, { cwd: tree, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const kubeconfig = join(tree, DATA, 'kubeconfig');
  await until(() => child.exitCode !== null || existsSync(kubeconfig), {
    withinMs: 60_000,
    what: 'the kubeconfig',
  });
  expect(existsSync(kubeconfig), output).toBe(true);
  for (const [path, mode] of [
    [DATA, 0o700],
    [`${DATA}/kubeconfig`, 0o600],
  ] as const) {
    expect(statSync(join(tree, path)).mode & 0o777, path).toBe(mode);
  }
}, 120_000);
