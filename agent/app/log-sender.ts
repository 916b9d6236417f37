/**
 * Answers `kubectl logs`. The machine has no port for requests: the response to a heartbeat says that a log was
 * requested. The agent then lists its requests, and sends the output of each in chunks with sequence numbers.
 *
 * A chunk without an answer is sent again with its number. One log that fails affects no other log. At most one
 * chunk of each log is in memory, whatever the container writes.
 */
import { LOG_CHUNK_BYTES_MAX } from '../../shared/kinds/pods/log-request.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import { LogUnavailableError, type PodRuntime } from '../ports/pod-runtime.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { retryAfterWaitMs } from '../rules/backoff.ts';
import { describeAnswer } from '../rules/kube-answer.ts';
import {
  type ChunkAnswer,
  type ChunkTiming,
  chunkAnswer,
  chunkDueMs,
  chunkPath,
  LOG_MS_MAX,
  LOGS_AT_ONCE_MAX,
  logsPath,
  type RequestedLog,
  requestedLogs,
} from '../rules/log-request.ts';

/** Attempts to list the requests. A client waits 20 s. */
const LIST_ATTEMPTS_MAX = 4;
/** Attempts to send one chunk. The API regards a node without chunks for 20 s as lost. */
const CHUNK_ATTEMPTS_MAX = 20;
const RETRY_MS = 1_000;
/** The client of a request has not connected yet. Milliseconds. */
const NOT_OPENED_MS = 500;
/** Answered requests that may still be listed. */
const ANSWERED_MAX = 100;

export interface LogSenderDependencies {
  readonly nodeName: string;
  readonly api: KubeApi;
  readonly runtime: Pick<PodRuntime, 'readLog'>;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly stop: AbortSignal;
  /** By gzip. */
  readonly compress: (bytes: Uint8Array) => Uint8Array;
}

interface Chunk {
  readonly sequence: number;
  readonly data?: string;
  readonly end?: { readonly message?: string };
}

export class LogSender {
  readonly #dependencies: LogSenderDependencies;
  readonly #sending = new Map<string, Promise<void>>();
  /** Oldest first. */
  readonly #answered = new Set<string>();
  /** The id of this process. The API accepts the chunks of one log from one process. */
  readonly #sender: string;
  #listing: Promise<void> | undefined;
  #listAgain = false;
  /** A listed request was not started, because LOGS_AT_ONCE_MAX were sent. */
  #isOneWaiting = false;

  constructor(dependencies: LogSenderDependencies) {
    this.#dependencies = dependencies;
    const { time, fraction } = dependencies;
    this.#sender = `${time.nowMs().toString(36)}-${Math.floor(fraction() * 2 ** 48).toString(36)}`;
  }

  /** A log of this node was requested. */
  requested(): void {
    if (this.#dependencies.stop.aborted) return;
    if (this.#listing !== undefined) {
      this.#listAgain = true;
      return;
    }
    this.#listing = this.#list().finally(() => {
      this.#listing = undefined;
      if (!this.#listAgain) return;
      this.#listAgain = false;
      this.requested();
    });
  }

  /** Resolves when no request is listed or answered. */
  async settled(): Promise<void> {
    while (this.#listing !== undefined || this.#sending.size > 0) {
      await Promise.all([this.#listing, ...this.#sending.values()]);
    }
  }

  async #list(): Promise<void> {
    const { api, nodeName, time, fraction, log, stop } = this.#dependencies;
    for (let attempt = 1; attempt <= LIST_ATTEMPTS_MAX && !stop.aborted; attempt += 1) {
      const answer = await api.send({ method: 'GET', path: logsPath(nodeName), signal: stop });
      const requests = requestedLogs(answer, time.nowMs());
      if (requests !== undefined) {
        for (const request of requests) this.#start(request);
        return;
      }
      if (stop.aborted) return;
      log.warn('the requests for logs cannot be listed', { why: describeAnswer(answer), attempt });
      const waitMs = answer.kind === 'answered' ? retryAfterWaitMs(answer, fraction()) : 0;
      if (attempt < LIST_ATTEMPTS_MAX) await time.sleep(Math.max(RETRY_MS, waitMs), stop);
    }
  }

  #start(request: RequestedLog): void {
    const { id } = request;
    if (this.#sending.has(id) || this.#answered.has(id)) return;
    // The API opens no more. But it may have ended one of these, which its sender learns with the next chunk.
    if (this.#sending.size >= LOGS_AT_ONCE_MAX) {
      this.#isOneWaiting = true;
      return;
    }
    const done = this.#answer(request)
      .catch((cause: unknown) => {
        this.#dependencies.log.error('a log could not be sent', { podUid: request.query.podUid, cause: String(cause) });
      })
      .finally(() => {
        this.#sending.delete(id);
        this.#answered.add(id);
        if (this.#answered.size > ANSWERED_MAX) this.#answered.delete([...this.#answered][0] ?? '');
        if (!this.#isOneWaiting) return;
        this.#isOneWaiting = false;
        this.requested();
      });
    this.#sending.set(id, done);
  }

  async #answer(request: RequestedLog): Promise<void> {
    const { runtime, time, stop } = this.#dependencies;
    const own = new AbortController();
    const ended = AbortSignal.any([stop, own.signal]);
    const untilMs = time.monotonicMs() + LOG_MS_MAX;
    const output = new ReadOutput(runtime.readLog?.(request.query, ended));
    try {
      let sequence = 0;
      let sentMs = time.monotonicMs();
      let lastBytes = 0;
      while (!ended.aborted && time.monotonicMs() < untilMs) {
        const hasSent = sequence > 0;
        await this.#collect(output, { sentMs, hasSent, lastBytes }, ended);
        if (ended.aborted) return;
        const { bytes, end } = output.take(LOG_CHUNK_BYTES_MAX);
        const isSign = bytes.length === 0 && end === undefined && hasSent;
        const { answer, atMs } = await this.#send(request.id, {
          sequence,
          ...(isSign || (bytes.length === 0 && end?.message !== undefined) ? {} : { data: this.#encoded(bytes) }),
          ...(end === undefined ? {} : { end }),
        });
        if (answer !== 'stored' || end !== undefined) return;
        if (!isSign) sequence += 1;
        // Counted from the request, not from its answer: a distant API would make each log slower than its limit.
        sentMs = atMs;
        lastBytes = bytes.length;
      }
    } finally {
      own.abort();
      await output.close();
    }
  }

  #encoded(bytes: Uint8Array): string {
    return Buffer.from(this.#dependencies.compress(bytes)).toString('base64');
  }

  /** Reads output until a chunk is due. */
  async #collect(
    output: ReadOutput,
    timing: Pick<ChunkTiming, 'sentMs' | 'hasSent' | 'lastBytes'>,
    ended: AbortSignal,
  ): Promise<void> {
    const { time } = this.#dependencies;
    while (!ended.aborted) {
      const unsent = output.unsent();
      const waitMs = chunkDueMs({ ...timing, unsent, logs: this.#sending.size }) - time.monotonicMs();
      if (waitMs <= 0) return;
      const woken = new AbortController();
      const pause = time.sleep(waitMs, AbortSignal.any([ended, woken.signal]));
      await Promise.race([pause, ...(unsent === 'complete' ? [] : [output.next()])]);
      woken.abort();
    }
  }

  /** Sends one chunk until the API has answered. `atMs`: when it was sent the last time, monotonic. */
  async #send(id: string, chunk: Chunk): Promise<{ readonly answer: ChunkAnswer; readonly atMs: number }> {
    const { api, nodeName, time, fraction, stop } = this.#dependencies;
    const body = { sender: this.#sender, ...chunk };
    let atMs = time.monotonicMs();
    for (let attempt = 1; attempt <= CHUNK_ATTEMPTS_MAX && !stop.aborted; attempt += 1) {
      atMs = time.monotonicMs();
      const answer = await api.send({ method: 'PUT', path: chunkPath(nodeName, id), body, signal: stop });
      const meaning = chunkAnswer(answer);
      if (meaning === 'stored' || meaning === 'ended') return { answer: meaning, atMs };
      const askedMs = answer.kind === 'answered' ? retryAfterWaitMs(answer, fraction()) : 0;
      await time.sleep(meaning === 'notOpened' ? NOT_OPENED_MS : Math.max(RETRY_MS, askedMs), stop);
    }
    return { answer: 'ended', atMs };
  }
}

const NO_RUNTIME = 'this node runs no pods';

/** Output that was read and not sent. Reading pauses while a chunk is full. */
class ReadOutput {
  readonly #iterator: AsyncIterator<Uint8Array> | undefined;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #end: { readonly message?: string } | undefined;
  #reading: Promise<void> | undefined;

  constructor(output: AsyncIterable<Uint8Array> | undefined) {
    this.#iterator = output?.[Symbol.asyncIterator]();
    if (this.#iterator === undefined) this.#end = { message: NO_RUNTIME };
  }

  unsent(): ChunkTiming['unsent'] {
    if (this.#end !== undefined || this.#bytes >= LOG_CHUNK_BYTES_MAX) return 'complete';
    return this.#bytes === 0 ? 'none' : 'some';
  }

  /** Resolves when the next piece was read, or the output has ended. */
  next(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** At most `bytesMax`, and the end with the last of it. */
  take(bytesMax: number): { readonly bytes: Uint8Array; readonly end?: { readonly message?: string } } {
    const all = Buffer.concat(this.#pieces);
    const rest = all.subarray(bytesMax);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    return {
      bytes: all.subarray(0, bytesMax),
      ...(rest.length > 0 || this.#end === undefined ? {} : { end: this.#end }),
    };
  }

  /** Stops reading. An error of the reader was reported already, or the log has ended. */
  async close(): Promise<void> {
    await this.#iterator?.return?.().catch(() => undefined);
  }

  async #read(): Promise<void> {
    try {
      const step = await this.#iterator?.next();
      if (step === undefined || step.done === true) this.#end ??= {};
      else {
        this.#pieces.push(step.value);
        this.#bytes += step.value.length;
      }
    } catch (cause) {
      const isKnown = cause instanceof LogUnavailableError;
      this.#end ??= { message: isKnown ? cause.message : `the log cannot be read: ${(cause as Error).message}` };
    }
  }
}
