import type { Readable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { defined } from '../../shared/defined.ts';
import {
  type ChunkTakenMessage,
  COMPILE_CACHE_VARIABLE,
  type FunctionError,
  type InvokeMessage,
  RUNNING,
  type StreamHead,
  type WorkerMessage,
  type WorkerSetup,
} from './protocol.ts';

export interface EnvironmentSetup extends Omit<WorkerSetup, 'freezer'> {
  readonly variables: Readonly<Record<string, string>>;
  /** Folder of compiled code that environments share. Undefined: each compiles its own. */
  readonly compileCache: string | undefined;
  /** It behaves as on AWS: frozen between events, and a streaming handler runs on after its receiver disconnected. */
  readonly awsLimits: boolean;
  /** A line the function printed. */
  onLine(line: string): void;
}

export type RunOutcome =
  | { readonly kind: 'returned'; readonly payload: string }
  | { readonly kind: 'failed'; readonly error: FunctionError }
  | { readonly kind: 'timedOut' }
  /** The receiver of a streamed response disconnected, and `awsLimits` is off. */
  | { readonly kind: 'abandoned' };

/** Receives a streamed response. */
export interface StreamReceiver {
  head(head: StreamHead): void;
  /** Settles when the next chunk may come. */
  chunk(chunk: Uint8Array): Promise<void>;
  /** Aborted when the receiver disconnected. */
  readonly gone: AbortSignal;
}

/** Lambda allows 10 s to load a function. */
const INIT_TIMEOUT_MS = 10_000;

/** Largest young generation of a thread. V8's own default, 48 MB, fills with garbage in each environment. */
const YOUNG_GENERATION_MEGABYTES = 8;

/**
 * One execution environment of a function, as seen from outside. After a timeout or a crash it is dead and to be
 * replaced; a handler that merely throws leaves it usable.
 */
export class Environment {
  #worker: Worker;
  readonly #freezer: Int32Array<SharedArrayBuffer> | undefined;
  readonly #awsLimits: boolean;
  #pending:
    | { readonly requestId: string; readonly receiver: StreamReceiver | undefined; settle(outcome: RunOutcome): void }
    | undefined;
  #deathReason: FunctionError | undefined;
  readonly ready: Promise<void>;
  readonly #startedMs = performance.now();
  #unreportedInitMs: number | undefined;

  constructor(setup: EnvironmentSetup) {
    const { onLine, variables, compileCache, awsLimits, ...functionSetup } = setup;
    this.#awsLimits = awsLimits;
    const freezer = awsLimits ? new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT) : undefined;
    this.#freezer = freezer && new Int32Array(freezer);
    this.#thaw();
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: { ...functionSetup, freezer } satisfies WorkerSetup,
      env: { ...variables, ...defined({ [COMPILE_CACHE_VARIABLE]: compileCache }) },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MEGABYTES },
      stdout: true,
      stderr: true,
      execArgv: [],
    });
    eachLine(this.#worker.stdout, onLine);
    eachLine(this.#worker.stderr, onLine);
    const output = { stdout: lineSplitter(onLine), stderr: lineSplitter(onLine) };
    this.#worker.on('message', (message: WorkerMessage) => {
      if (message.kind === 'output') output[message.stream].add(message.text);
    });
    this.#worker.on('exit', () => {
      output.stdout.end();
      output.stderr.end();
    });
    this.ready = this.#initialised();
    this.ready.catch(() => {});
    this.#worker.on('message', (message: WorkerMessage) => this.#answered(message));
    this.#worker.on('error', (error) => this.#died(errorOf('Runtime.UnhandledException', error)));
    this.#worker.on('exit', (code) => {
      this.#died({
        errorType: 'Runtime.ExitError',
        errorMessage: `the function exited with code ${code}`,
        stack: '',
      });
    });
  }

  /** How long it was loaded. Once: it is in the report of the first event. */
  takeInitMs(): number | undefined {
    const initMs = this.#unreportedInitMs;
    this.#unreportedInitMs = undefined;
    return initMs;
  }

  get dead(): boolean {
    return this.#deathReason !== undefined;
  }

  /**
   * Runs one event; never two at once. When the receiver of a stream disconnects, its handler runs on to its end or its
   * timeout and is not notified; what it writes is discarded. Without `awsLimits` the environment is terminated
   * instead.
   *
   * Source: AWS Lambda Developer Guide, "Response streaming for Lambda functions": a streamed response is not
   * interrupted when the connection of the client breaks, and the full duration is billed.
   */
  async run(message: Omit<InvokeMessage, 'kind'>, receiver?: StreamReceiver): Promise<RunOutcome> {
    try {
      await this.ready;
    } catch (error) {
      return { kind: 'failed', error: this.#deathReason ?? errorOf('Runtime.InitError', error) };
    }
    if (this.#pending !== undefined) throw new Error('an execution environment runs one event at a time');
    if (this.#deathReason !== undefined) return { kind: 'failed', error: this.#deathReason };
    // It disconnected while the function was loaded. There is no event for a signal that is already aborted.
    if (!this.#awsLimits && receiver?.gone.aborted === true) return { kind: 'abandoned' };
    return await new Promise<RunOutcome>((resolve) => {
      const end = (outcome: RunOutcome) => {
        this.#deathReason = { errorType: 'Sandbox.Ended', errorMessage: outcome.kind, stack: '' };
        settle(outcome);
        void this.terminate();
      };
      const abandon = () => end({ kind: 'abandoned' });
      const timer = setTimeout(() => end({ kind: 'timedOut' }), message.deadlineMs - Date.now());
      const settle = (outcome: RunOutcome) => {
        clearTimeout(timer);
        receiver?.gone.removeEventListener('abort', abandon);
        this.#pending = undefined;
        resolve(outcome);
      };
      this.#pending = { requestId: message.requestId, receiver, settle };
      if (!this.#awsLimits) receiver?.gone.addEventListener('abort', abandon);
      this.#thaw();
      this.#worker.postMessage({ kind: 'invoke', ...message } satisfies InvokeMessage);
    });
  }

  /** CPU time of the thread so far. Milliseconds; 0 after the thread has ended. */
  cpuMs(): Promise<number> {
    return this.#measure(async () => {
      const { user, system } = await this.#worker.cpuUsage();
      return (user + system) / 1_000;
    });
  }

  /** Used heap of the thread, garbage included; 0 after the thread has ended. */
  heapBytes(): Promise<number> {
    return this.#measure(async () => (await this.#worker.getHeapStatistics()).used_heap_size);
  }

  /** Between the end of a thread and its exit event, Node rejects each question with ERR_WORKER_NOT_RUNNING. */
  async #measure(read: () => Promise<number>): Promise<number> {
    if (this.dead) return 0;
    try {
      return await read();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_NOT_RUNNING') return 0;
      throw error;
    }
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Before a message to the worker: a frozen thread reads none. */
  #thaw(): void {
    if (this.#freezer === undefined) return;
    Atomics.store(this.#freezer, 0, RUNNING);
    Atomics.notify(this.#freezer, 0);
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
        if (error !== undefined) return reject(error);
        this.#unreportedInitMs = performance.now() - this.#startedMs;
        resolve();
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
    if (message.kind === 'ready' || message.kind === 'initFailed' || message.kind === 'output') return;
    const pending = this.#pending;
    if (pending?.requestId !== message.requestId) return;
    switch (message.kind) {
      case 'result':
        pending.settle({ kind: 'returned', payload: message.payload });
        return;
      case 'failed':
        pending.settle({ kind: 'failed', error: message.error });
        return;
      case 'streamHead':
        pending.receiver?.head(message.head);
        return;
      case 'streamChunk':
        void this.#passOn(message.chunk, pending.receiver);
    }
  }

  async #passOn(chunk: Uint8Array, receiver: StreamReceiver | undefined): Promise<void> {
    await receiver?.chunk(chunk);
    this.#worker.postMessage({ kind: 'chunkTaken' } satisfies ChunkTakenMessage);
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

function lineSplitter(onLine: (line: string) => void) {
  let rest = '';
  return {
    add(text: string): void {
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(0, LINE_LENGTH_MAX);
      for (const line of lines) onLine(line);
    },
    end(): void {
      if (rest !== '') onLine(rest);
      rest = '';
    },
  };
}

function eachLine(stream: Readable, onLine: (line: string) => void): void {
  const lines = lineSplitter(onLine);
  stream.setEncoding('utf8');
  stream.on('data', lines.add);
  stream.on('end', lines.end);
}
