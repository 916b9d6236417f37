/** The streaming function: the same API, but it streams watches and logs. Every other request is 404. */

import type { UserInfo } from '../../domain/access/user-info.ts';
import { defined } from '../../domain/defined.ts';
import { watchLevel } from '../../domain/watches/watch-shares.ts';
import { parsePath, verbOf } from '../../kube/request/request.ts';
import { statusResponse } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import type { Authentication } from '../../ports/authenticator.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { NodeKeys } from '../../ports/node-keys.ts';
import type { WatchTicketVerifier } from '../../ports/watch-tickets.ts';
import { type SlotOutcome, type WatchSlot, type WatchSlots, watchSlots } from '../../store/watch-slot-store.ts';
import { withoutImpersonation } from '../access/impersonation.ts';
import { type ApiOptions, apiDependencies } from '../compose.ts';
import type { LogSource } from '../logs/log-stream.ts';
import { isPodLog, openLog } from '../logs/open-log.ts';
import type { AnswerPodLog, Call } from '../request/call.ts';
import { serveApi } from '../serve.ts';
import { clusterObjects } from '../storage/cluster-objects.ts';
import { type IsStillAllowed, revocationCheck } from './revocation.ts';
import { STATE_VERSION_PARAMETER, TICKET_PARAMETER, watchTarget } from './watch-redirect.ts';
import { watchEndMs, watchLines } from './watch-stream.ts';

/** From the last line of a watch to the release of its slot, at most. Milliseconds. */
const RELEASE_MS = 5_000;

export interface StreamedAnswer {
  readonly head: HttpResponse;
  /** Absent when the head is the whole response, as for a refusal. */
  readonly lines?: AsyncIterable<string>;
  /** The output of a container, in place of lines. */
  readonly output?: AsyncIterable<Uint8Array>;
}

export interface WatchOptions extends Omit<ApiOptions, 'answerPodLog' | 'answerWatch'> {
  /** Absent: logs are not served. */
  readonly gunzip?: LogSource['gunzip'];
  readonly tickets: WatchTicketVerifier;
  /** For closing the watches of machines after their identity was deleted. */
  readonly nodeKeys: NodeKeys;
}

/** @param deadlineMs when the last line must be sent, in epoch milliseconds */
export type ServeWatch = (request: HttpRequest, deadlineMs: number) => Promise<StreamedAnswer>;

export function serveWatch(options: WatchOptions): ServeWatch {
  // Once for all requests: the roles in memory, and the throttling of log lines.
  const common = apiDependencies({ ...options, makesInitialObjects: false });
  const slots = watchSlots(options.items);
  const revocation = { nodeKeys: options.nodeKeys, objects: clusterObjects(options), clock: options.clock };
  return async (request, deadlineMs) => {
    if (!isStreamed(request)) return { head: statusResponse(status.unknownPath().status) };
    const ticket = request.query.get(TICKET_PARAMETER);
    const query = new URLSearchParams(request.query);
    query.delete(TICKET_PARAMETER);
    // Only a ticket ensures that the API chose it.
    const stateVersion = ticket === null ? undefined : (query.get(STATE_VERSION_PARAMETER) ?? undefined);
    let lines: AsyncIterable<string> | undefined;
    let output: AsyncIterable<Uint8Array> | undefined;
    /** Of the ticket. */
    let impersonator: UserInfo | undefined;
    const isStillAllowedFor = ({ user, caller }: StreamedCall) =>
      revocationCheck(revocation, [impersonator ?? caller, user]);
    const serve = serveApi({
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
        answerPodLog: logAnswerer(options, { slots, isStillAllowedFor, deadlineMs }, (opened) => {
          output = opened;
        }),
      }),
      answerWatch: async (source, watch, call) => {
        const { timeoutSeconds } = watch;
        const slot = await acquireSlot(options, slots, { user: call.user, deadlineMs, ...defined({ timeoutSeconds }) });
        lines = releasing(
          slot,
          watchLines(
            source,
            { ...watch, ...defined({ stateVersion }) },
            {
              deadlineMs,
              quietMs: options.policy.watchQuietSeconds * 1_000,
              isStillAllowed: isStillAllowedFor(call),
            },
          ),
        );
        return {
          status: 200,
          headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
          body: '',
        };
      },
    });
    // A ticket names the user that the request acts as.
    const headers = ticket === null ? request.headers : withoutImpersonation(request.headers);
    const head = await serve({ ...request, headers, query });
    return { head, ...defined({ lines, output }) };
  };
}

/** Between two attempts of a client without a slot. Seconds. */
const RETRY_AFTER_SECONDS = 5;

/** @throws StatusError 429 if the user holds its share of the watches, or no slot is free */
async function acquireSlot(
  { clock, random, policy }: WatchOptions,
  slots: WatchSlots,
  { user, timeoutSeconds, deadlineMs }: { user: UserInfo | undefined; timeoutSeconds?: number; deadlineMs: number },
): Promise<WatchSlot> {
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
  if (outcome.kind === 'acquired') return outcome.slot;
  throw status.tooManyRequests(`${reasonOf(outcome, username, groups)}; try again later`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

function reasonOf(
  outcome: Exclude<SlotOutcome, { kind: 'acquired' }>,
  username: string,
  groups: readonly string[],
): string {
  switch (outcome.kind) {
    case 'userAtLimit':
      return `${JSON.stringify(username)} holds ${outcome.held} watches, the most that concurrentWatchesMax allows one user`;
    case 'levelAtLimit': {
      const users = watchLevel(groups) === 'machine' ? 'machines' : 'users other than machines';
      return `the ${outcome.slots} watches that concurrentWatchesMax allows ${users} are held`;
    }
    case 'contended':
      return 'other watches started at the same time';
  }
}

async function* releasing<T>(slot: WatchSlot, lines: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* lines;
  } finally {
    await slot.release();
  }
}

type StreamedCall = Pick<Call, 'user' | 'caller'>;

interface LogLimits {
  readonly slots: WatchSlots;
  readonly isStillAllowedFor: (call: StreamedCall) => IsStillAllowed | undefined;
  readonly deadlineMs: number;
}

/** Answers logs, in a slot like that of a watch. The slot is released on a refusal. */
function logAnswerer(
  options: WatchOptions,
  { slots, isStillAllowedFor, deadlineMs }: LogLimits,
  onOpen: (output: AsyncIterable<Uint8Array>) => void,
): AnswerPodLog | undefined {
  const { gunzip } = options;
  if (gunzip === undefined) return undefined;
  return async (log, call) => {
    const slot = await acquireSlot(options, slots, { user: call.user, deadlineMs });
    try {
      const opening = { log, call, deadlineMs, isStillAllowed: isStillAllowedFor(call) };
      onOpen(releasing(slot, await openLog({ ...options, gunzip }, opening)));
    } catch (error) {
      await slot.release();
      throw error;
    }
    return { status: 200, headers: { 'content-type': 'text/plain', 'cache-control': 'no-cache, private' }, body: '' };
  };
}

function isStreamed({ method, path, query }: HttpRequest): boolean {
  const parsed = parsePath(path);
  if (parsed.kind !== 'resource') return false;
  const verb = verbOf(method, parsed.target, query);
  return verb === 'watch' || (verb === 'get' && isPodLog(parsed.target));
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
