/** The process in which tests run, seen from outside: one question at a time, each with a limit of time. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface Request {
  readonly test: string;
  /** A file's text for this run; without it all files are as they are. */
  readonly change?: { readonly file: string; readonly text: string };
}

export interface Answer {
  readonly passed: boolean;
  /** Names of failed tests, or what could not be loaded. */
  readonly failures: readonly string[];
  readonly tookMs: number;
}

const START_LIMIT_MS = 60_000;
const PROGRAM = join(import.meta.dirname, 'warm-vitest.ts');

export class TestProcess {
  readonly #root: string;
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;

  constructor(root: string, environment: Readonly<Record<string, string>> = {}) {
    this.#root = root;
    this.#environment = environment;
  }

  /** What the test file said, or 'timeout': the process is then ended, with all that it started. */
  async run(request: Request, limitMs: number): Promise<Answer | 'timeout'> {
    if (this.#child === undefined) {
      this.#child = this.#start();
      if ((await this.#answer(START_LIMIT_MS)) === 'timeout') throw new Error('vitest did not start in time');
    }
    this.#child.send(request);
    return this.#answer(limitMs);
  }

  /** Ends the process group: vitest, its workers, and programs that tests started. */
  close(): void {
    const pid = this.#child?.pid;
    this.#child = undefined;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ESRCH') throw cause;
    }
  }

  #start(): ChildProcess {
    // A vitest that runs inside a test of vitest must not mistake itself for one of its workers.
    const inherited = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name));
    const env = { ...Object.fromEntries(inherited), ...this.#environment };
    return fork(PROGRAM, {
      cwd: this.#root,
      env,
      detached: true,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  }

  async #answer(limitMs: number): Promise<Answer | 'timeout'> {
    const child = this.#child;
    if (child === undefined) return 'timeout';
    const signal = AbortSignal.timeout(Math.ceil(limitMs));
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    try {
      const ended = once(child, 'exit', { signal: either }).then(() => 'timeout' as const);
      const answered = once(child, 'message', { signal: either }).then(([answer]) => answer as Answer);
      ended.catch(() => undefined);
      const outcome = await Promise.race([answered, ended]);
      if (outcome === 'timeout') this.close();
      return outcome;
    } catch (cause) {
      if (!signal.aborted) throw cause;
      this.close();
      return 'timeout';
    } finally {
      stop.abort();
    }
  }
}
