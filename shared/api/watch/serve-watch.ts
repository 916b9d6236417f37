/** The watch function: the same API, but it streams the lines of a watch. Every other request is 404. */

import type { UserInfo } from '../../domain/access/user-info.ts';
import { defined } from '../../domain/defined.ts';
import { watchLevel } from '../../domain/watches/watch-shares.ts';
import { failedRequests, REQUEST_FAILED } from '../../kube/request/log-throttle.ts';
import { refusedSignIns } from '../../kube/request/refused-sign-ins.ts';
import { parsePath, verbOf } from '../../kube/request/request.ts';
import { statusResponse } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import type { Authentication } from '../../ports/authenticator.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { NodeKeys } from '../../ports/node-keys.ts';
import type { WatchTicketVerifier } from '../../ports/watch-tickets.ts';
import { type SlotOutcome, type WatchSlot, type WatchSlots, watchSlots } from '../../store/watch-slot-store.ts';
import { withoutImpersonation } from '../access/impersonation.ts';
import { type ApiOptions, composeApi } from '../compose.ts';
import { revocationCheck } from './revocation.ts';
import { TICKET_PARAMETER, watchTarget } from './watch-redirect.ts';
import { watchEndMs, watchLines } from './watch-stream.ts';

/** From the last line of a watch to the release of its slot, at most. Milliseconds. */
const RELEASE_MS = 5_000;

export interface StreamedAnswer {
  readonly head: HttpResponse;
  /** Absent when the head is the whole response, as for a refusal. */
  readonly lines?: AsyncIterable<string>;
}

export interface WatchOptions extends Omit<ApiOptions, 'answerWatch'> {
  readonly tickets: WatchTicketVerifier;
  /** For closing the watches of machines after their identity was deleted. */
  readonly nodeKeys: NodeKeys;
}

/** @param deadlineMs when the last line must be sent, in epoch milliseconds */
export type ServeWatch = (request: HttpRequest, deadlineMs: number) => Promise<StreamedAnswer>;

export function serveWatch(options: WatchOptions): ServeWatch {
  // The API is composed for each watch. The throttling of log lines must outlive it.
  const noteRefusal = refusedSignIns(options.log);
  const noteFault = failedRequests(options.log, REQUEST_FAILED);
  const slots = watchSlots(options.items);
  return async (request, deadlineMs) => {
    if (!isWatch(request)) return { head: statusResponse(status.unknownPath().status) };
    const ticket = request.query.get(TICKET_PARAMETER);
    const query = new URLSearchParams(request.query);
    query.delete(TICKET_PARAMETER);
    let lines: AsyncIterable<string> | undefined;
    const serve = composeApi({
      ...options,
      noteRefusal,
      noteFault,
      makesInitialObjects: false,
      // A ticket replaces the credentials. Without a ticket the credentials are checked as in the API.
      authenticator:
        ticket === null
          ? options.authenticator
          : { authenticate: () => authenticateByTicket(options, request, ticket) },
      answerWatch: async (source, watch, { user }) => {
        const { timeoutSeconds } = watch;
        const slot = await acquireSlot(options, slots, { user, deadlineMs, ...defined({ timeoutSeconds }) });
        lines = releasing(
          slot,
          watchLines(source, watch, {
            deadlineMs,
            quietMs: options.policy.watchQuietSeconds * 1_000,
            isStillAllowed: revocationCheck(options.nodeKeys, user),
          }),
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
    return { head, ...defined({ lines }) };
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

async function* releasing(slot: WatchSlot, lines: AsyncIterable<string>): AsyncGenerator<string> {
  try {
    yield* lines;
  } finally {
    await slot.release();
  }
}

function isWatch({ method, path, query }: HttpRequest): boolean {
  const parsed = parsePath(path);
  return parsed.kind === 'resource' && verbOf(method, parsed.target, query) === 'watch';
}

async function authenticateByTicket(
  { tickets, clock }: WatchOptions,
  request: HttpRequest,
  ticket: string,
): Promise<Authentication> {
  const verdict = await tickets.verify(ticket, watchTarget(request.path, request.query), clock.nowMs());
  return verdict.kind === 'valid' ? { kind: 'authenticated', user: verdict.user } : verdict;
}
