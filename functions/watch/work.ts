/** The streaming function: the same API, but it streams watches and logs. Every other request is 404. */

import type { Authentication } from '../../shared/access/authenticator.ts';
import { withoutImpersonation } from '../../shared/access/impersonation.ts';
import type { NodeKeys } from '../../shared/access/node-keys.ts';
import type { UserInfo } from '../../shared/access/user-info.ts';
import type { WatchTicketVerifier } from '../../shared/access/watch-tickets.ts';
import type { AnswerPodLog, Answers, Call, ReadDependencies } from '../../shared/api/call.ts';
import { readLog } from '../../shared/api/logs/read-log.ts';
import { type RequestOptions, requestDependencies } from '../../shared/api/request-dependencies.ts';
import { acceptsGzip } from '../../shared/api/response-body.ts';
import { serveApi } from '../../shared/api/serve.ts';
import { answerLongPoll } from '../../shared/api/watch/long-poll.ts';
import { watch as answerWatchCall } from '../../shared/api/watch/watch-call.ts';
import { logNameOf } from '../../shared/api/watch/watch-events.ts';
import { STATE_VERSION_PARAMETER, TICKET_PARAMETER, watchTarget } from '../../shared/api/watch/watch-redirect.ts';
import type { WatchCall, WatchSource } from '../../shared/api/watch/watch-request.ts';
import { defined } from '../../shared/defined.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import { type HttpRequest, type HttpResponse, statusResponse } from '../../shared/kubernetes/http.ts';
import { parsePath, verbOf } from '../../shared/kubernetes/request.ts';
import * as status from '../../shared/kubernetes/status.ts';
import type { Meter } from '../../shared/observability/log.ts';
import { DEFAULT_FORM, type StreamForm } from '../../shared/watches/stream-form.ts';
import type { GzipFrames } from './gzip-frames.ts';
import type { LogSource } from './log-stream.ts';
import { type MeasureForm, type Measuring, measurementDue, probeLines } from './measure-form.ts';
import { WATCHES_AS_LONG_POLLS } from './metrics.ts';
import { isPodLog, openLog } from './open-log.ts';
import { paddedLog } from './padded-log.ts';
import { type FindRefusal, revocationCheck } from './revocation.ts';
import { watchLevel } from './watch-shares.ts';
import { type SlotOutcome, type WatchSlot, type WatchSlots, watchSlots } from './watch-slot-store.ts';
import { watchEndMs, watchLines } from './watch-stream.ts';

/** From the last line of a watch to the release of its slot, at most. Milliseconds. */
const RELEASE_MS = 5_000;

interface Streamed {
  /** Absent when the head is the whole response, as for a refusal. */
  lines?: AsyncIterable<string>;
  /** The output of a container, in place of lines. */
  output?: AsyncIterable<Uint8Array>;
  /** To run beside the answer: the form of streams is to be measured. */
  measure?: MeasureForm;
}

export interface StreamedAnswer extends Streamed {
  readonly head: HttpResponse;
}

export interface WatchOptions extends RequestOptions, Pick<Measuring, 'deployment' | 'openProbe'> {
  /** Absent: logs are not served. */
  readonly gunzip?: LogSource['gunzip'];
  /** Absent: logs have no padding. */
  readonly gzipFrames?: () => GzipFrames;
  readonly meter?: Meter;
  readonly tickets: WatchTicketVerifier;
  /** For closing the watches of machines after their identity was deleted. */
  readonly nodeKeys: NodeKeys;
  /** Limits the watches at once. Absent: slots in the tables, for all execution environments. */
  readonly slots?: WatchSlots;
  /**
   * Where a process sees the commits itself: the source of a watch of this resource. Absent: it reads the log again and
   * again.
   */
  readonly sourceOf?: (source: WatchSource, resource: string) => WatchSource;
  /**
   * Number of commits that may have withdrawn access, where a process sees the commits itself. It also wakes `pause`.
   */
  readonly withdrawals?: () => number;
  /** A watch without an event ends after this time. Milliseconds. Absent: `watchQuietSeconds` of the policy. */
  readonly quietMs?: number;
}

/**
 * @param deadlineMs when the last line must be sent, in epoch milliseconds
 * @param left aborted when the client has left. Absent: no transport reports it
 */
export type ServeWatch = (request: HttpRequest, deadlineMs: number, left?: AbortSignal) => Promise<StreamedAnswer>;

export function serveWatch(options: WatchOptions): ServeWatch {
  // Once for all requests: the roles in memory, and the throttling of log lines.
  const common = requestDependencies({ makesInitialObjects: false, ...options });
  const { sourceOf = (source) => source, quietMs = options.policy.watchQuietSeconds * 1_000 } = options;
  const slots = options.slots ?? watchSlots(options.items);
  const revocation = { nodeKeys: options.nodeKeys, objects: clusterObjects(options), clock: options.clock };
  return async (request, deadlineMs, left) => {
    if (!isStreamed(request)) {
      const probe = await probeLines(options, request);
      return probe === undefined
        ? { head: statusResponse(status.unknownPath().status) }
        : { head: STREAM, lines: probe };
    }
    const ticket = request.query.get(TICKET_PARAMETER);
    const query = new URLSearchParams(request.query);
    query.delete(TICKET_PARAMETER);
    // Only a ticket ensures that the API chose it.
    const stateVersion = ticket === null ? undefined : (query.get(STATE_VERSION_PARAMETER) ?? undefined);
    const streamed: Streamed = {};
    /** The impersonator in the ticket. */
    let impersonator: UserInfo | undefined;
    const findRefusalFor = (call: StreamedCall): FindRefusal =>
      revocationCheck(revocation, [impersonator ?? call.caller, call.user], call);
    const occupySlot = async (user: UserInfo, timeoutSeconds?: number) => {
      const { slot, measured } = await acquireSlot(options, slots, {
        user,
        deadlineMs,
        ...defined({ timeoutSeconds }),
      });
      const measure = measurementDue(options, measured);
      if (measure !== undefined) streamed.measure = measure;
      return { slot, form: measured?.form ?? DEFAULT_FORM };
    };
    const dependencies: ReadDependencies = {
      ...common,
      // A ticket replaces the credentials. Without a ticket the credentials are checked as in the API.
      authenticator:
        ticket === null
          ? options.authenticator
          : {
              authenticate: () =>
                authenticateByTicket(options, request, ticket, (caller) => {
                  impersonator = caller;
                }),
            },
      ...defined({
        answerPodLog: logAnswerer(
          { ...options, pause: pauseUntil(left, options.pause) },
          { occupySlot, findRefusalFor, deadlineMs },
          (output) => {
            streamed.output = output;
          },
        ),
      }),
      answerWatch: async (source, asked, call) => {
        const { slot, form } = await occupySlot(call.user, asked.timeoutSeconds);
        const watch = { ...asked, ...defined({ stateVersion }) };
        if (form.kind === 'longPoll') {
          options.meter?.add(WATCHES_AS_LONG_POLLS, 1, 'Count');
          return asLongPoll(source, watch, slot);
        }
        const limits = {
          deadlineMs,
          quietMs,
          paddingBytes: form.paddingBytes,
          findRefusal: findRefusalFor(call),
          isDefined: definitionCheck(common.descriptorOf, call.descriptor),
          withdrawals: options.withdrawals,
        };
        const followed = sourceOf(source, logNameOf(watch.descriptor));
        const untilGone = { ...followed, pause: pauseUntil(left, followed.pause) };
        streamed.lines = releasing(slot, watchLines(untilGone, watch, limits));
        return STREAM;
      },
    };
    // A ticket names the user that the request acts as.
    const headers = ticket === null ? request.headers : withoutImpersonation(request.headers);
    const serve = serveApi(dependencies, streamedAnswers(dependencies));
    const head = await serve({ ...request, headers, query });
    return { head, ...streamed };
  };
}

/** A new definition of the same name is another one. */
function definitionCheck(
  descriptorOf: ReadDependencies['descriptorOf'],
  { custom, group, version, resource }: Call['descriptor'],
): (() => Promise<boolean>) | undefined {
  if (custom === undefined) return undefined;
  return async () => {
    const now = (await descriptorOf(group, version, resource))?.custom;
    return now?.definitionUid === custom.definitionUid && now.definitionGeneration === custom.definitionGeneration;
  };
}

/** isStreamed has let through what these answer. */
const streamedAnswers = (dependencies: ReadDependencies): Answers => ({
  verbs: {
    watch: (call) => answerWatchCall(dependencies, call),
    get: (call) => readLog(dependencies, call),
  },
});

const STREAM: HttpResponse = {
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
  body: '',
};

const NOT_STREAMED =
  'this cluster cannot stream: watches end with their first changes, and logs may be late ' +
  '(docs/operations/alarms/watches-not-streamed.md)';
/** RFC 9111 5.5, and as warnings of upstream's API: kubectl prints it. */
const WARNING = { warning: `299 - ${JSON.stringify(NOT_STREAMED)}` };

/** The end of an answer is delivered even where a chunk is not. */
async function asLongPoll(source: WatchSource, watch: WatchCall, slot: WatchSlot): Promise<HttpResponse> {
  try {
    const answer = await answerLongPoll(source, watch);
    return { ...answer, headers: { ...answer.headers, ...WARNING } };
  } finally {
    await slot.release();
  }
}

/** Between two attempts of a client without a slot. Seconds. */
const RETRY_AFTER_SECONDS = 5;

/** @throws StatusError 429 if the user holds its share of the watches, or no slot is free */
async function acquireSlot(
  { clock, random, policy }: WatchOptions,
  slots: WatchSlots,
  { user, timeoutSeconds, deadlineMs }: { user: UserInfo | undefined; timeoutSeconds?: number; deadlineMs: number },
): Promise<Extract<SlotOutcome, { kind: 'acquired' }>> {
  const nowMs = clock.nowMs();
  const { username = '', groups = [] } = user ?? {};
  const outcome = await slots.acquire({
    holder: random.uuid(),
    user: username,
    level: watchLevel(groups),
    slotsMax: policy.concurrentWatchesMax,
    nowMs,
    untilMs: watchEndMs(nowMs, timeoutSeconds, deadlineMs) + RELEASE_MS,
    fraction: () => random.fraction(),
  });
  if (outcome.kind === 'acquired') return outcome;
  throw status.tooManyRequests(`${reasonOf(outcome, slots.limitedBy, { username, groups })}; try again later`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

function reasonOf(
  outcome: Exclude<SlotOutcome, { kind: 'acquired' }>,
  limitedBy: string,
  { username, groups }: UserInfo,
): string {
  switch (outcome.kind) {
    case 'userAtLimit':
      return `${JSON.stringify(username)} holds ${outcome.held} watches, the most that ${limitedBy} allows one user`;
    case 'levelAtLimit': {
      const users = watchLevel(groups) === 'machine' ? 'machines' : 'users other than machines';
      return `the ${outcome.slots} watches that ${limitedBy} allows ${users} are held`;
    }
    case 'contended':
      return 'other watches started at the same time';
  }
}

/**
 * Fails after the client has left: a stream without events waits nowhere else, and would hold its slot until its
 * deadline.
 */
const pauseUntil = (left: AbortSignal | undefined, pause: WatchSource['pause']): WatchSource['pause'] =>
  left === undefined
    ? pause
    : async (milliseconds) => {
        const outcome = await pause(milliseconds);
        left.throwIfAborted();
        return outcome;
      };

/** Releases the slot when the parts end, fail, or are left. A generator around them would cost as much as a part. */
function releasing<T>(slot: WatchSlot, parts: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = parts[Symbol.asyncIterator]();
  const ended = async (result: IteratorResult<T>): Promise<IteratorResult<T>> => {
    await slot.release();
    return result;
  };
  const failed = async (fault: unknown): Promise<never> => {
    await slot.release();
    throw fault;
  };
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => iterator.next().then((result) => (result.done === true ? ended(result) : result), failed),
      // First: a generator that waits for a change returns only after its wait.
      return: async () => {
        await slot.release();
        void iterator.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

type StreamedCall = Pick<Call, 'user' | 'caller' | 'accessRefusal'>;

interface LogLimits {
  readonly occupySlot: (user: UserInfo) => Promise<{ readonly slot: WatchSlot; readonly form: StreamForm }>;
  readonly findRefusalFor: (call: StreamedCall) => FindRefusal;
  readonly deadlineMs: number;
}

/** Answers logs, in a slot like that of a watch. The slot is released on a refusal. */
function logAnswerer(
  options: WatchOptions,
  { occupySlot, findRefusalFor, deadlineMs }: LogLimits,
  onOpen: (output: AsyncIterable<Uint8Array>) => void,
): AnswerPodLog | undefined {
  const { gunzip, gzipFrames } = options;
  if (gunzip === undefined) return undefined;
  return async (log, call) => {
    const { slot, form } = await occupySlot(call.user);
    const paddingBytes = form.kind === 'stream' ? form.paddingBytes : 0;
    const frames = paddingBytes > 0 && acceptsGzip(call.request) ? gzipFrames?.() : undefined;
    try {
      const opening = { log, call, deadlineMs, findRefusal: findRefusalFor(call) };
      const output = releasing(slot, await openLog({ ...options, gunzip }, opening));
      onOpen(frames === undefined ? output : paddedLog(output, frames, paddingBytes));
    } catch (error) {
      await slot.release();
      throw error;
    }
    return {
      status: 200,
      headers: {
        'content-type': 'text/plain',
        'cache-control': 'no-cache, private',
        ...(frames === undefined ? {} : { 'content-encoding': 'gzip', vary: 'Accept-Encoding' }),
        ...(form.kind === 'longPoll' ? WARNING : {}),
      },
      body: '',
    };
  };
}

export function isWatch({ method, path, query }: HttpRequest): boolean {
  const parsed = parsePath(path);
  return parsed.kind === 'resource' && verbOf(method, parsed.target, query) === 'watch';
}

function isStreamed(request: HttpRequest): boolean {
  const { method, path, query } = request;
  const parsed = parsePath(path);
  if (parsed.kind !== 'resource') return false;
  return isWatch(request) || (verbOf(method, parsed.target, query) === 'get' && isPodLog(parsed.target));
}

async function authenticateByTicket(
  { tickets, clock }: WatchOptions,
  request: HttpRequest,
  ticket: string,
  onCaller: (caller: UserInfo | undefined) => void,
): Promise<Authentication> {
  const verdict = await tickets.verify(ticket, watchTarget(request.path, request.query), clock.nowMs());
  if (verdict.kind !== 'valid') return verdict;
  onCaller(verdict.caller);
  return { kind: 'authenticated', user: verdict.user };
}
