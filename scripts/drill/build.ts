/** The builds of a drill: this working tree, and a commit of it. Both are packed as a release is. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { emulationContext, synthesise } from '../../aws-local/assembly/synthesise.ts';
import { ACCOUNT_CONCURRENCY_DEFAULT } from '../../aws-local/functions/account-concurrency.ts';
import { ROOT } from '../release/manifest.ts';
import type { Build } from './home.ts';

const LOCK = 'package-lock.json';

/** The last tag, otherwise the commit before this one. */
export function previousRef(): string {
  const tags = git('tag', '--sort=-creatordate', '--merged', 'HEAD').split('\n');
  return tags.find((tag) => tag !== '') ?? 'HEAD~1';
}

/** The full name of a commit. @throws Error of git for a ref that it does not know */
export const commitOf = (ref: string): string => git('rev-parse', '--verify', `${ref}^{commit}`);

/** Directory of builds; `remove` deletes it. */
export class Builds {
  readonly #directory: string;

  constructor() {
    // Beside node_modules, for links to its files.
    mkdirSync(join(ROOT, 'dist'), { recursive: true });
    this.#directory = mkdtempSync(join(ROOT, 'dist', 'drill-'));
  }

  /** The working tree. */
  current(): Build {
    return this.#pack('this', ROOT);
  }

  /** @throws Error when the commit cannot be built */
  ofCommit(name: string, commit: string): Build {
    const tree = join(this.#directory, 'tree');
    mkdirSync(tree);
    const archive = execFileSync('git', ['archive', '--format=tar', commit], { cwd: ROOT, maxBuffer: 1e9 });
    execFileSync('tar', ['-x', '-C', tree], { input: archive });
    const lockOf = (directory: string): string => readFileSync(join(directory, LOCK), 'utf8');
    if (lockOf(tree) === lockOf(ROOT)) {
      execFileSync('cp', ['-al', join(ROOT, 'node_modules'), join(tree, 'node_modules')]);
    } else {
      execFileSync('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], {
        cwd: tree,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    }
    return this.#pack(name, tree);
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #pack(name: string, tree: string): Build {
    const { version } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as { readonly version: string };
    const out = join(this.#directory, `${name}-release`);
    const program = ['scripts/release/run.ts', '--version', version, '--only', 'program', '--out', out];
    execFileSync(process.execPath, program, { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] });
    const packed = readdirSync(out).find((file) => file.endsWith('.tgz'));
    const installed = join(this.#directory, `${name}-installed`);
    mkdirSync(installed);
    execFileSync('tar', ['-xzf', join(out, packed ?? ''), '--strip-components=1', '-C', installed]);
    return {
      name,
      command: [process.execPath, join(installed, 'bin/nodekeeper.mjs')],
      assembly: () => assemblyOf(tree),
    };
  }
}

/** Of the sources in a directory. @returns the directory of the assembly */
export async function assemblyOf(projectDirectory: string): Promise<string> {
  const context = emulationContext(ACCOUNT_CONCURRENCY_DEFAULT);
  return (await synthesise({ projectDirectory, context, inputFiles: [], mode: 'auto' })).directory;
}

const git = (...words: readonly string[]): string =>
  execFileSync('git', [...words], { cwd: ROOT, encoding: 'utf8' }).trim();
