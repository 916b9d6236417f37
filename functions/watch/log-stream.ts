/**
 * `pods/log` in the streaming function: waits for the chunks of the agent and forwards them.
 *
 * Before the first byte, a failure is a Status. After it, the stream can only end; its last line says why. A node that
 * sends nothing for SILENCE_MS, not even that it is alive, is regarded as lost.
 *
 * Cost of an hour: a read of half a unit per POLL_MS and per REQUEST_CHECK_MS, beside the held function. The checks of
 * the identity that reads cost as those of a watch (revocation.ts).
 */

import type { Clock } from '../../shared/clock.ts';
import { bytesMaxOf, LOG_CHUNK_BYTES_MAX, type LogRequest } from '../../shared/kinds/pods/log-request.ts';
import { closeLogRequest, type LogChunk, logSeenMs, takeLogChunks } from '../../shared/kinds/pods/log-request-store.ts';
import * as status from '../../shared/kubernetes/status.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type FindRefusal, REVOCATION_CHECK_MS } from './revocation.ts';

/** Between two reads of the chunks. Milliseconds. */
const POLL_MS = 300;
/** Two heartbeats: the agent learns of the request by the response to the next one. Milliseconds. */
const FIRST_CHUNK_MS = 20_000;
/** Without a sign of the agent. It sends one every 5 s. Milliseconds. */
const SILENCE_MS = 20_000;
/** Between two reads of the request. Milliseconds. */
const REQUEST_CHECK_MS = 5_000;

export interface LogSource {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** undefined: malformed, or longer than `bytesMax`. */
  readonly gunzip: (bytes: Uint8Array, bytesMax: number) => Uint8Array | undefined;
}

export interface StartedLog {
  readonly first: readonly LogChunk[];
}

/** @throws StatusError 504 if the node does not answer, 400 with the reason of the node if it has no log */
export async function awaitFirstChunk(
  { items, clock, pause }: LogSource,
  { id, nodeName }: LogRequest,
): Promise<StartedLog> {
  const untilMs = clock.nowMs() + FIRST_CHUNK_MS;
  for (;;) {
    const first = await takeLogChunks(items, id, 0);
    const [chunk] = first;
    if (chunk !== undefined) {
      const failure = chunk.data === undefined ? chunk.end?.message : undefined;
      if (failure !== undefined) throw status.badRequest(failure);
      return { first };
    }
    if (clock.nowMs() >= untilMs) {
      throw status.gatewayTimeout(`node ${nodeName} did not answer within ${FIRST_CHUNK_MS / 1_000}s`);
    }
    await pause(POLL_MS);
  }
}

export interface LogEnding {
  /** When the last byte must be sent. Epoch milliseconds. */
  readonly endMs: number;
  readonly findRefusal: FindRefusal;
}

/**
 * The output, until the log ends, a limit is reached, the user may no longer read it, or `endMs`. The request is
 * deleted afterwards.
 */
export async function* logOutput(
  source: LogSource,
  request: LogRequest,
  { first }: StartedLog,
  ending: LogEnding,
): AsyncGenerator<Uint8Array> {
  const output = new BoundedOutput(request, source.gunzip);
  try {
    const why = yield* forwardChunks(source, request, { first, output, ...ending });
    if (why !== undefined) yield output.lastLine(why);
  } catch (error) {
    yield output.lastLine('the log was cut off by a fault of the API');
    throw error;
  } finally {
    await closeLogRequest(source.items, request);
  }
}

interface Forwarding extends LogEnding {
  readonly first: readonly LogChunk[];
  readonly output: BoundedOutput;
}

/** Returns why the output is incomplete; undefined if it is complete. */
async function* forwardChunks(
  { items, clock, pause }: LogSource,
  request: LogRequest,
  { first, output, endMs, findRefusal }: Forwarding,
): AsyncGenerator<Uint8Array, string | undefined> {
  let chunks = first;
  let sequence = 0;
  let heardMs = clock.nowMs();
  let checkedMs = heardMs;
  let allowedMs = heardMs;
  for (;;) {
    for (const chunk of chunks) {
      const { bytes, why, isLast } = output.add(chunk);
      if (bytes !== undefined) yield bytes;
      if (isLast) return why;
    }
    sequence += chunks.length;
    const nowMs = clock.nowMs();
    if (chunks.length > 0) heardMs = nowMs;
    if (nowMs >= endMs) return 'the stream has reached its time limit; run the command again with --since';
    if (nowMs - checkedMs >= REQUEST_CHECK_MS) {
      checkedMs = nowMs;
      const seenMs = await logSeenMs(items, request);
      if (seenMs === undefined) return `${JSON.stringify(request.user)} follows this container by a newer command`;
      heardMs = Math.max(heardMs, seenMs);
      if (nowMs - heardMs >= SILENCE_MS) {
        return `node ${request.nodeName} has sent nothing for ${SILENCE_MS / 1_000} s; the log may be incomplete`;
      }
    }
    if (nowMs - allowedMs >= REVOCATION_CHECK_MS) {
      allowedMs = nowMs;
      // A check that fails does not end the log, as with watches.
      const refusal = await findRefusal().catch(() => undefined);
      if (refusal?.status.code === 401) return 'the identity that reads this log was deleted';
      if (refusal !== undefined) return `the user may no longer read this log: ${refusal.status.message}`;
    }
    if (chunks.length === 0) await pause(Math.min(POLL_MS, endMs - nowMs));
    chunks = await takeLogChunks(items, request.id, sequence);
  }
}

interface Added {
  readonly bytes?: Uint8Array;
  /** No output follows. */
  readonly isLast: boolean;
  readonly why?: string | undefined;
}

const LINE_FEED = 10;

/** Counts and limits the bytes of one log. */
class BoundedOutput {
  readonly #gunzip: LogSource['gunzip'];
  readonly #bytesMax: number;
  readonly #isChosen: boolean;
  #sent = 0;
  #endsLine = true;

  constructor(request: LogRequest, gunzip: LogSource['gunzip']) {
    const { bytes, isChosen } = bytesMaxOf(request.options);
    this.#gunzip = gunzip;
    this.#bytesMax = bytes;
    this.#isChosen = isChosen;
  }

  add({ data, end }: LogChunk): Added {
    const bytes = data === undefined ? new Uint8Array() : this.#gunzip(data, LOG_CHUNK_BYTES_MAX);
    if (bytes === undefined) return { isLast: true, why: 'the node sent a malformed chunk' };
    const kept = bytes.subarray(0, this.#bytesMax - this.#sent);
    this.#sent += kept.length;
    if (kept.length > 0) this.#endsLine = kept.at(-1) === LINE_FEED;
    const output = kept.length === 0 ? {} : { bytes: kept };
    if (kept.length < bytes.length) return { ...output, isLast: true, why: this.#whyCut() };
    return { ...output, isLast: end !== undefined, why: end?.message };
  }

  /** A line of ours at the end of the output. */
  lastLine(why: string): Uint8Array {
    return Buffer.from(`${this.#endsLine ? '' : '\n'}nodekeeper: ${why}\n`);
  }

  #whyCut(): string | undefined {
    if (this.#isChosen) return undefined;
    const megabytes = this.#bytesMax / 1_048_576;
    return `the log is cut off after ${megabytes} MB; select a part with --tail, --since or --limit-bytes`;
  }
}
