/** Hooks of a container: commands in it, and HTTP requests to it. */
import type { LifecycleHandler } from '../../../shared/kinds/types.ts';
import type { ProbeClient } from '../../ports/probe-client.ts';
import type { AgentTime } from '../../ports/time.ts';
import { httpTarget } from '../../rules/probe-handler.ts';
import type { ContainerEngine } from './container-engine.ts';
import { POLL_MS, type PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';

/** Longest wait of an HTTP hook. Milliseconds. */
const HTTP_HOOK_MS = 30_000;

export interface ContainerHooksDependencies {
  readonly time: AgentTime;
  readonly engine: Pick<ContainerEngine, 'execute'>;
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
      const result = await this.#dependencies.engine.execute(container, exec.command ?? [], { mayWait, output: 'log' });
      if (result.kind === 'exited') return result.exitCode === 0 ? undefined : `exit code ${result.exitCode}`;
      return result.kind === 'failed' ? result.message : 'it did not end in time';
    }
    if (httpGet !== undefined) return this.#get(container, httpGet);
    await this.#pauseWhile(container, (sleep?.seconds ?? 0) * 1_000, mayWait);
    return undefined;
  }

  async #get(container: ContainerRecord, httpGet: NonNullable<LifecycleHandler['httpGet']>) {
    const { probeClient, hostIp } = this.#dependencies;
    const found = httpTarget(
      httpGet,
      this.#processes.specOf(container),
      this.#processes.record.podIp || hostIp() || '127.0.0.1',
    );
    if (found.kind === 'failed') return found.message;
    const result = await probeClient.httpGet(found.target, HTTP_HOOK_MS);
    // Any answer is a success, as upstream.
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
