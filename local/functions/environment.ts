import type { Readable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import type { FunctionError, InvokeMessage, WorkerMessage, WorkerSetup } from './protocol.ts';

export interface EnvironmentSetup extends WorkerSetup {
  readonly variables: Readonly<Record<string, string>>;
  /** A line the function printed. */
  onLine(line: string): void;
}

export type RunOutcome =
  | { readonly kind: 'returned'; readonly payload: string }
  | { readonly kind: 'failed'; readonly error: FunctionError }
  | { readonly kind: 'timedOut' };

/** Lambda allows 10 s to load a function. */
const INIT_TIMEOUT_MS = 10_000;

/**
 * One execution environment of a function, as seen from outside. After a timeout or a crash it is dead and to be
 * replaced; a handler that merely throws leaves it usable.
 */
export class Environment {
  #worker: Worker;
  #pending: { readonly requestId: string; settle(outcome: RunOutcome): void } | undefined;
  #deathReason: FunctionError | undefined;
  readonly ready: Promise<void>;

  constructor(setup: EnvironmentSetup) {
    const { onLine, variables, ...workerData } = setup;
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData,
      env: { ...variables },
      stdout: true,
      stderr: true,
      execArgv: [],
    });
    eachLine(this.#worker.stdout, onLine);
    eachLine(this.#worker.stderr, onLine);
    this.ready = this.#initialised();
    this.ready.catch(() => {});
    this.#worker.on('message', (message: WorkerMessage) => this.#answered(message));
    this.#worker.on('error', (error) => this.#died(errorOf('Runtime.UnhandledException', error)));
    this.#worker.on('exit', (code) => {
      this.#died({
        errorType: 'Runtime.ExitError',
        errorMessage: `the function ended its process with code ${code}`,
        stack: '',
      });
    });
  }

  get dead(): boolean {
    return this.#deathReason !== undefined;
  }

  /** Runs one event; never two at once. */
  async run(message: Omit<InvokeMessage, 'kind'>): Promise<RunOutcome> {
    try {
      await this.ready;
    } catch (error) {
      return { kind: 'failed', error: this.#deathReason ?? errorOf('Runtime.InitError', error) };
    }
    if (this.#pending !== undefined) throw new Error('an execution environment runs one event at a time');
    if (this.#deathReason !== undefined) return { kind: 'failed', error: this.#deathReason };
    return await new Promise<RunOutcome>((resolve) => {
      const timer = setTimeout(() => {
        this.#deathReason = { errorType: 'Sandbox.Timedout', errorMessage: 'timed out', stack: '' };
        settle({ kind: 'timedOut' });
        void this.#worker.terminate();
      }, message.deadlineMs - Date.now());
      const settle = (outcome: RunOutcome) => {
        clearTimeout(timer);
        this.#pending = undefined;
        resolve(outcome);
      };
      this.#pending = { requestId: message.requestId, settle };
      this.#worker.postMessage({ kind: 'invoke', ...message } satisfies InvokeMessage);
    });
  }

  /** CPU time of the thread so far. Milliseconds; 0 once it is gone. */
  async cpuMs(): Promise<number> {
    if (this.dead) return 0;
    const { user, system } = await this.#worker.cpuUsage();
    return (user + system) / 1_000;
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #initialised(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#died({
          errorType: 'Runtime.InitTimeout',
          errorMessage: `not loaded after ${INIT_TIMEOUT_MS} ms`,
          stack: '',
        });
        reject(new Error(`not loaded after ${INIT_TIMEOUT_MS} ms`));
        void this.#worker.terminate();
      }, INIT_TIMEOUT_MS);
      const finish = (error?: Error) => {
        clearTimeout(timer);
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#worker.on('message', (message: WorkerMessage) => {
        if (message.kind === 'ready') finish();
        if (message.kind !== 'initFailed') return;
        this.#died({ ...message.error, errorType: 'Runtime.InitError' });
        finish(new Error(message.error.errorMessage));
        void this.#worker.terminate();
      });
      this.#worker.once('exit', () => finish(new Error('ended while loading')));
    });
  }

  #answered(message: WorkerMessage): void {
    if (message.kind !== 'result' && message.kind !== 'failed') return;
    if (this.#pending?.requestId !== message.requestId) return;
    if (message.kind === 'result') this.#pending.settle({ kind: 'returned', payload: message.payload });
    else this.#pending.settle({ kind: 'failed', error: message.error });
  }

  #died(error: FunctionError): void {
    this.#deathReason ??= error;
    this.#pending?.settle({ kind: 'failed', error: this.#deathReason });
  }
}

function errorOf(errorType: string, error: unknown): FunctionError {
  const message = error instanceof Error ? error.message : String(error);
  return { errorType, errorMessage: message, stack: error instanceof Error ? (error.stack ?? message) : message };
}

const LINE_LENGTH_MAX = 1_000_000;

function eachLine(stream: Readable, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = (lines.pop() ?? '').slice(0, LINE_LENGTH_MAX);
    for (const line of lines) onLine(line);
  });
  stream.on('end', () => {
    if (rest !== '') onLine(rest);
  });
}
