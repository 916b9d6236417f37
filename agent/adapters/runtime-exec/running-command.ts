/**
 * A command that somebody follows, as a process of this machine. A terminal is that of script(1) of util-linux: Node.js
 * cannot open one. stty(1) sets its size.
 */
import { type ChildProcess, execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { written } from '../../../shared/host/written.ts';
import type { TerminalSize } from '../../../shared/sessions/channels.ts';
import type { RunningCommand } from '../../ports/pod-runtime.ts';
import { processesWith, signal } from './process-table.ts';
import { ENV, quoted, SHELL } from './shell.ts';

/** Variable with an id of its own for each command in a container: by it, all that the command started is found. */
export const COMMAND_MARK = 'NODEKEEPER_COMMAND';
const EXIT_SIGNALLED = 128;
/** A terminal exists a moment after its process has started. */
const TERMINAL_ATTEMPTS_MAX = 40;
const TERMINAL_POLL_MS = 50;
const STTY_MS = 5_000;

/** The words with a mark of their own. */
export function marked(words: readonly string[]): { readonly words: readonly string[]; readonly mark: string } {
  const mark = randomUUID();
  return { words: [ENV, `${COMMAND_MARK}=${mark}`, ...words], mark };
}

/** The same command on a terminal of its own. TERM as container runtimes set it. */
export function terminalWords(words: readonly string[]): readonly string[] {
  const command = `exec ${words.map(quoted).join(' ')}`;
  const options = ['--quiet', '--return', '--flush', '--echo', 'always', '--command', command, '/dev/null'];
  return [ENV, `SHELL=${SHELL}`, 'TERM=xterm', 'script', ...options];
}

interface Running {
  readonly mark: string;
  readonly tty: boolean;
}

export function runningCommand(child: ChildProcess, { mark, tty }: Running): RunningCommand {
  const { stdin, stdout, stderr } = child;
  const exit = Promise.withResolvers<number>();
  child.once('error', (cause) => exit.reject(cause));
  child.once('exit', (code, name) => {
    exit.resolve(code ?? EXIT_SIGNALLED + (name === null ? 0 : constants.signals[name]));
  });
  // Whoever follows the command may have left.
  exit.promise.catch(() => undefined);
  // The command may exit without reading its input.
  stdin?.on('error', () => undefined);
  child.unref();
  let size: TerminalSize | undefined;
  let isResizing = false;
  return {
    stdout: stdout ?? Readable.from([]),
    stderr: stderr ?? Readable.from([]),
    exitCode: exit.promise,
    async write(bytes) {
      if (stdin !== null) await written(stdin, bytes);
    },
    endInput: () => stdin?.end(),
    resize(next) {
      if (!tty || child.pid === undefined) return;
      size = next;
      if (isResizing) return;
      isResizing = true;
      void resizeUntil(child.pid, () => {
        const latest = size;
        size = undefined;
        return latest;
      }).finally(() => {
        isResizing = false;
      });
    },
    kill() {
      stdin?.destroy();
      stdout?.destroy();
      stderr?.destroy();
      if (child.pid !== undefined && child.exitCode === null) signal(-child.pid, 'SIGKILL');
      for (const { pid, mark: found } of processesWith(COMMAND_MARK)) if (found === mark) signal(pid, 'SIGKILL');
    },
  };
}

/** Sets the newest size until there is no newer one. */
async function resizeUntil(scriptPid: number, next: () => TerminalSize | undefined): Promise<void> {
  for (let size = next(); size !== undefined; size = next()) {
    for (let attempt = 0; attempt < TERMINAL_ATTEMPTS_MAX; attempt += 1) {
      const terminal = terminalOf(scriptPid);
      if (terminal !== undefined) {
        await setSize(terminal, size);
        break;
      }
      await pause(TERMINAL_POLL_MS);
    }
  }
}

const setSize = (terminal: string, { rows, columns }: TerminalSize): Promise<void> =>
  new Promise((resolve) => {
    const args = ['-F', terminal, 'rows', String(rows), 'cols', String(columns)];
    execFile('stty', args, { timeout: STTY_MS }, () => resolve());
  });

/** Path of the terminal that a process of script has opened for its command. */
function terminalOf(scriptPid: number): string | undefined {
  try {
    const [child = ''] = readFileSync(`/proc/${scriptPid}/task/${scriptPid}/children`, 'utf8').split(' ');
    const path = child === '' ? '' : readlinkSync(`/proc/${child}/fd/0`);
    return path.startsWith('/dev/pts/') ? path : undefined;
  } catch {
    return undefined;
  }
}
