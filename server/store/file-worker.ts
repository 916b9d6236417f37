/** The threads of file-thread.ts, seen from the process. */
import { Worker } from 'node:worker_threads';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { CheckpointResult, FileCheck, FileWork, RowCounts, WorkAnswer, WorkRequest } from './file-work.ts';

type ResultOf<Work extends FileWork> = Work['kind'] extends 'backup'
  ? RowCounts
  : Work['kind'] extends 'check'
    ? FileCheck
    : CheckpointResult;

/** Each reads the whole file in a thread of its own. */
const APART_MAX = 2;

interface Waiting {
  resolve(result: unknown): void;
  reject(fault: unknown): void;
}

export class FileWorker {
  readonly #file: string;
  /** Absent after it ended by a fault: the next work starts another one. */
  #worker: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
  readonly #apart = new Set<Promise<unknown>>();
  #last = 0;

  constructor(file: string) {
    this.#file = file;
    this.#worker = this.#start();
  }

  /** @throws StoreFault when the work could not be done */
  do<Work extends FileWork>(work: Work): Promise<ResultOf<Work>> {
    if (work.kind !== 'backup' && work.kind !== 'check') return this.#do(work);
    if (this.#apart.size >= APART_MAX) return Promise.reject(failure(`${APART_MAX} backups or checks run already`));
    const apart = this.#doApart(work).finally(() => this.#apart.delete(apart));
    this.#apart.add(apart);
    return apart;
  }

  /** Every backup and check has ended. */
  async apartEnded(): Promise<void> {
    await Promise.allSettled(this.#apart);
  }

  /** Writes wait for `begin-log`, and what reads the whole file lasts for minutes: never in front of it. */
  async #doApart<Work extends FileWork>(work: Work): Promise<ResultOf<Work>> {
    const apart = new FileWorker(this.#file);
    try {
      return await apart.#do(work);
    } finally {
      await apart.end();
    }
  }

  #do<Work extends FileWork>(work: Work): Promise<ResultOf<Work>> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    this.#last += 1;
    const request: WorkRequest = { id: this.#last, work };
    return new Promise<ResultOf<Work>>((resolve, reject) => {
      // A process does not end while somebody waits for the thread.
      worker.ref();
      this.#waiting.set(request.id, { resolve: resolve as (result: unknown) => void, reject });
      worker.postMessage(request);
    });
  }

  async end(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL('./file-thread.ts', import.meta.url), {
      workerData: { file: this.#file },
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 64 },
    });
    worker.unref();
    worker.on('message', (answer: WorkAnswer) => this.#onAnswer(answer));
    worker.on('error', (cause) => this.#onEnd(worker, cause));
    worker.on('exit', () => this.#onEnd(worker, undefined));
    return worker;
  }

  #onAnswer(answer: WorkAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    if ('failure' in answer) waiting?.reject(failure(answer.failure, answer.errcode));
    else waiting?.resolve(answer.result);
  }

  #onEnd(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const reason = failure('its thread has ended', undefined, cause);
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
  }
}

const failure = (message: string, errcode?: number, cause?: unknown): StoreFault =>
  new StoreFault('unreachable', `the database file: ${message}${errcode === undefined ? '' : ` (${errcode})`}`, {
    retryable: true,
    cause,
  });
