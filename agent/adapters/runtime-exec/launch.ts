/**
 * Starts a program with limits. A shell waits in place of the program until the agent has moved it into its group, and
 * then becomes the program (execve(2)), which keeps the process id. So no instruction of the program runs outside its
 * group, and all that it starts is inside.
 *
 * The agent moves the process, not the process itself: the user of the container may not write to control groups.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { ENV, executableFault, SHELL, SHELL_NAME, SHELL_VARIABLES } from './shell.ts';

/** Exit code of the shell if the agent did not release it. */
const NOT_RELEASED = 125;
/** Variable of the shell for the line that releases it. */
const RELEASE = 'NODEKEEPER_RELEASE';
const BYTES_PER_KIBIBYTE = 1_024;

export interface Launch {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly options: Omit<SpawnOptions, 'env' | 'stdio'>;
  /** `pipe`: the caller writes its input. */
  readonly input: 'ignore' | 'pipe';
  /** Descriptor of stdout and stderr; `pipe`: the caller reads them. */
  readonly output: number | 'pipe';
  /** Descriptor 4 of the process, if it has one. */
  readonly message?: number | undefined;
  /** Moves the process into its group; undefined: it has none. Called before the program runs. */
  readonly enter: ((pid: number) => void) | undefined;
  /** Memory that each process may allocate (RLIMIT_DATA of getrlimit(2)); undefined: no limit. Bytes. */
  readonly dataBytesMax: number | undefined;
  readonly oomScoreAdjust: number;
}

/** @throws Error of spawn, with its code; of `enter` */
export function launch(launched: Launch): ChildProcess {
  const { file, args, env, options, input, output, message, enter, dataBytesMax } = launched;
  const isDirect = enter === undefined && dataBytesMax === undefined;
  if (isDirect) {
    const child = spawn(file, args, {
      ...options,
      env,
      stdio: [input, output, output, 'ignore', message ?? 'ignore'],
    });
    setOomScore(child.pid, launched.oomScoreAdjust);
    return child;
  }
  requireProgram(file, env['PATH'] ?? '', String(options.cwd ?? ''));
  const child = spawn(SHELL, ['-c', scriptFor(env, dataBytesMax), SHELL, ...prefixOf(env), file, ...args], {
    ...options,
    env,
    stdio: [input, output, output, 'pipe', message ?? 'ignore'],
  });
  if (child.pid === undefined) return child;
  const gate = child.stdio[3] as Writable;
  // The process may already have been killed.
  gate.on('error', () => undefined);
  try {
    enter?.(child.pid);
  } catch (cause) {
    child.kill('SIGKILL');
    gate.end();
    throw cause;
  }
  setOomScore(child.pid, launched.oomScoreAdjust);
  gate.end('go\n');
  return child;
}

function scriptFor(env: Readonly<Record<string, string>>, dataBytesMax: number | undefined): string {
  const own = SHELL_VARIABLES.filter((name) => !Object.hasOwn(env, name));
  const kibibytes = dataBytesMax === undefined ? undefined : Math.max(1, Math.floor(dataBytesMax / BYTES_PER_KIBIBYTE));
  return [
    `read -r ${RELEASE} <&3 || exit ${NOT_RELEASED}`,
    'exec 3<&-',
    ...(kibibytes === undefined ? [] : [`ulimit -d ${kibibytes} || exit ${NOT_RELEASED}`]),
    `unset ${[RELEASE, ...own].join(' ')}`,
    'exec "$@"',
  ].join('\n');
}

/** Such a variable is an argument of `env` for an instant, as the program starts. */
function prefixOf(env: Readonly<Record<string, string>>): readonly string[] {
  const odd = Object.entries(env).filter(([name]) => !SHELL_NAME.test(name));
  return odd.length === 0 ? [] : [ENV, ...odd.map(([name, value]) => `${name}=${value}`)];
}

/** The shell would report a missing program by its exit code alone. @throws Error as that of spawn */
function requireProgram(file: string, path: string, directory: string): void {
  const places = file.includes('/') ? [resolve(directory, file)] : path.split(':').map((each) => resolve(each, file));
  let code = 'ENOENT';
  for (const place of places) {
    const found = executableFault(place);
    if (found === undefined) return;
    if (found !== 'ENOENT') code = found;
  }
  throw Object.assign(new Error(`spawn ${file} ${code}`), { code });
}

/** Without the right to lower the score, the process keeps that of the agent. */
function setOomScore(pid: number | undefined, score: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, `${score}\n`);
  } catch {
    // Not started, exited already, or not permitted: the kernel then chooses by memory alone.
  }
}
