/** The project as it was just cloned, in a directory of its own, and the commands that a person types there. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const NOT_COPIED = [
  '.git',
  '.nodekeeper',
  '.nodekeeper-aws',
  '.nodekeeper-agent',
  'cdk.out',
  'dist',
  'node_modules',
  // The generator of the documentation site, with 100 MB of packages once it was used.
  'site',
  'test',
];

export interface Typed {
  readonly child: ChildProcess;
  /** Exit code. */
  readonly ended: Promise<number | null>;
  /** What it printed so far. */
  output(): string;
}

export interface ClonedTree {
  readonly path: string;
  /** Starts the command in the tree, with the kubeconfig of a cluster that was started there. */
  type(command: string, env?: NodeJS.ProcessEnv): Typed;
  /** Ctrl-C, and waits for its end. */
  interrupt(typed: Typed): Promise<void>;
  /** Interrupts everything that runs there. */
  remove(): Promise<void>;
}

/** @param policy becomes `short.yaml` */
export function cloneTree(policy: string): ClonedTree {
  const running: Typed[] = [];
  const path = mkdtempSync(join(tmpdir(), 'nodekeeper-tree-'));
  for (const entry of readdirSync(ROOT).filter((name) => !NOT_COPIED.includes(name))) {
    cpSync(join(ROOT, entry), join(path, entry), { recursive: true });
  }
  cpSync(join(ROOT, 'test/support'), join(path, 'test/support'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  writeFileSync(join(path, 'short.yaml'), policy);

  async function interrupt({ child, ended }: Typed): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGINT');
    await ended;
  }
  return {
    path,
    interrupt,
    type(command, env = {}) {
      const exported = existsSync(join(path, '.nodekeeper/kubeconfig'))
        ? 'export KUBECONFIG=$PWD/.nodekeeper/kubeconfig; '
        : '';
      const child = spawn('sh', ['-c', `${exported}${command}`], {
        cwd: path,
        detached: true,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (part: string) => {
          output += part;
        });
      }
      const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
      const typed = { child, ended, output: () => output };
      running.push(typed);
      return typed;
    },
    async remove() {
      for (const typed of running) await interrupt(typed);
      rmSync(path, { recursive: true, force: true });
    },
  };
}
