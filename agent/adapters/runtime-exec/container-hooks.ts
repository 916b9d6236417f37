/** Hooks and probes of a container: further processes in it, and HTTP requests to it. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { LifecycleHandler } from '../../../shared/kube/types.ts';
import type { CommandResult } from '../../ports/pod-runtime.ts';
import type { ProbeClient } from '../../ports/probe-client.ts';
import type { AgentTime } from '../../ports/time.ts';
import { httpTarget } from '../../rules/probe-handler.ts';
import type { ContainerCommands } from './container-commands.ts';
import { startProcess } from './container-start.ts';
import { openLog } from './log-file.ts';
import { POLL_MS, type PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';
import { signal } from './process-table.ts';

/** As upstream: the output of a probe in its event. */
const OUTPUT_BYTES_MAX = 10 * 1024;
/** Longest wait of an HTTP hook. Milliseconds. */
const HTTP_HOOK_MS = 30_000;
/** Longest wait for output after the exit of a command. Milliseconds. */
const OUTPUT_WAIT_MS = 200;
const EXIT_SIGNALLED = 128;

export interface ContainerHooksDependencies {
  readonly time: AgentTime;
  readonly commands: ContainerCommands;
  readonly hostIp: () => string | undefined;
  readonly probeClient: ProbeClient;
}

export class ContainerHooks {
  readonly #processes: PodProcesses;
  readonly #dependencies: ContainerHooksDependencies;

  constructor(processes: PodProcesses, dependencies: ContainerHooksDependencies) {
    this.#processes = processes;
    this.#dependencies = dependencies;
  }

  /** Returns why a hook failed, undefined if it succeeded. Ends early when `mayWait` is false. */
  async run(container: ContainerRecord, hook: LifecycleHandler, mayWait: () => boolean): Promise<string | undefined> {
    const { exec, httpGet, sleep } = hook;
    if (exec !== undefined) {
      const result = await this.execute(container, exec.command ?? [], { mayWait, output: 'log' });
      if (result.kind === 'exited') return result.exitCode === 0 ? undefined : `exit code ${result.exitCode}`;
      return result.kind === 'failed' ? result.message : 'it did not end in time';
    }
    if (httpGet !== undefined) return this.#get(container, httpGet);
    await this.#pauseWhile(container, (sleep?.seconds ?? 0) * 1_000, mayWait);
    return undefined;
  }

  /** Runs a command in the container. `output` is written to the log of the container, or is returned. */
  async execute(
    container: ContainerRecord,
    words: readonly string[],
    { mayWait, output }: { readonly mayWait: () => boolean; readonly output: 'log' | 'returned' },
  ): Promise<CommandResult> {
    const processes = this.#processes;
    let result: CommandResult | undefined;
    const pieces: Buffer[] = [];
    let child: ChildProcess;
    try {
      const line = this.#dependencies.commands.furtherLine(container, words);
      child = startProcess(processes, container, line, output === 'log' ? openLog(processes.logOf(container)) : 'pipe');
    } catch (cause) {
      return { kind: 'failed', message: (cause as Error).message };
    }
    const finish = (finished: CommandResult): void => {
      result ??= finished;
      processes.wake();
    };
    let length = 0;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (piece: Buffer) => {
        if (length < OUTPUT_BYTES_MAX) pieces.push(piece.subarray(0, OUTPUT_BYTES_MAX - length));
        length += piece.length;
      });
    }
    child.once('error', (cause) => finish({ kind: 'failed', message: cause.message }));
    child.once('exit', (code, name) => {
      const exitCode = code ?? EXIT_SIGNALLED + (name === null ? 0 : constants.signals[name]);
      const exited = () => finish({ kind: 'exited', exitCode, output: Buffer.concat(pieces).toString('utf8') });
      child.once('close', exited);
      // A child of the command may keep its output open.
      processes.after(OUTPUT_WAIT_MS, exited);
    });
    child.unref();
    while (result === undefined && mayWait() && !processes.isDetached) await processes.pause(POLL_MS);
    if (result !== undefined) return result;
    if (child.pid !== undefined) signal(-child.pid, 'SIGKILL');
    return { kind: 'timedOut' };
  }

  async #get(container: ContainerRecord, httpGet: NonNullable<LifecycleHandler['httpGet']>) {
    const { probeClient, hostIp } = this.#dependencies;
    const found = httpTarget(httpGet, this.#processes.specOf(container), hostIp() ?? '127.0.0.1');
    if (found.kind === 'failed') return found.message;
    const result = await probeClient.httpGet(found.target, HTTP_HOOK_MS);
    // As upstream: any answer is a success.
    return result.kind === 'failed' ? result.message : undefined;
  }

  async #pauseWhile(container: ContainerRecord, milliseconds: number, mayWait: () => boolean): Promise<void> {
    const { time } = this.#dependencies;
    const untilMs = time.monotonicMs() + milliseconds;
    while (time.monotonicMs() < untilMs && container.state.kind === 'running' && mayWait()) {
      await this.#processes.pause(Math.min(untilMs - time.monotonicMs(), POLL_MS));
    }
  }
}
