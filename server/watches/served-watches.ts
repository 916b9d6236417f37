/** Watches and logs of a process that sees the commits itself. */
import { type StreamedAnswer, serveWatch, type WatchOptions } from '../../functions/watch/work.ts';
import { ticketKeys } from '../../shared/access/process-key-store.ts';
import { CONCURRENT_API_LIMITS, systemBusyMs } from '../../shared/access/request-throttle.ts';
import { watchTicketVerifier } from '../../shared/access/watch-tickets.ts';
import { gunzip, gzipInThread } from '../../shared/gzip.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { type HttpRequest, statusResponse } from '../../shared/kubernetes/http.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import { type AcceptUpgrade, isWebSocket, upgradeOf } from '../sessions/upgrades.ts';
import { webSocketStream } from '../sessions/websocket-stream.ts';
import type { ChangeSignals } from './change-signals.ts';
import { sharedChanges } from './shared-changes.ts';
import { WATCHES_MAX, watchLimits } from './watch-limits.ts';

/** A watch lasts 30 to 60 minutes unless its client asks for less, as upstream. Milliseconds. */
const WATCH_MS_MIN = 1_800_000;
/** Between two reads of the log by a watch that no commit wakes. Milliseconds. */
const WATCH_POLL_MS = 60_000;

export interface ServedWatches {
  /** `directed`: the request with the query that a redirect of it has. `gone`: aborted when the client has left */
  serve(
    request: HttpRequest,
    directed: HttpRequest,
    gone: AbortSignal,
  ): Promise<StreamedAnswer & { readonly upgrade?: AcceptUpgrade }>;
  held(): number;
}

type ServedOptions = Omit<WatchOptions, 'gzip' | 'gunzip' | 'limits' | 'busyMs' | 'tickets' | 'slots' | 'quietMs'>;

export function servedWatches(options: ServedOptions & { readonly signals: ChangeSignals }): ServedWatches {
  const { items, clock, versionClock = clock, random, signals } = options;
  const slots = watchLimits(WATCHES_MAX);
  const changes = sharedChanges(changeLog({ items, clock: versionClock, shardsOf }), signals, clock);
  const watch = serveWatch({
    ...options,
    gzip: gzipInThread,
    gunzip,
    limits: CONCURRENT_API_LIMITS,
    busyMs: systemBusyMs,
    tickets: watchTicketVerifier(ticketKeys(items)),
    slots,
    // The connection shows that its client has left.
    quietMs: Number.POSITIVE_INFINITY,
    withdrawals: () => signals.withdrawals(),
    sourceOf(source, resource) {
      // Read before the log: a commit during the read makes the next wait end at once.
      let seen = signals.count(resource);
      return {
        ...source,
        pollMs: WATCH_POLL_MS,
        changes: {
          ...changes,
          readChanges(request) {
            seen = signals.count(resource);
            return changes.readChanges(request);
          },
        },
        async pause(milliseconds) {
          const isWoken = await signals.wait(resource, { seen, milliseconds });
          // A watch that does not read the log would never wait again, and nothing else would run.
          if (isWoken) seen = signals.count(resource);
          return isWoken ? 'changed' : 'waited';
        },
      };
    },
  });
  const deadlineMs = ({ query }: HttpRequest): number => {
    const askedMs = Number(query.get('timeoutSeconds') ?? 0) * 1_000;
    return clock.nowMs() + (askedMs > 0 ? askedMs : WATCH_MS_MIN * (1 + random.fraction()));
  };
  return {
    held: () => slots.held(),
    async serve(request, directed, gone) {
      const protocol = upgradeOf(request);
      // Otherwise the stream would be opened and never be read.
      if (protocol !== '' && !isWebSocket(request)) {
        return { head: statusResponse(status.badRequest(`watches and logs cannot be read by ${protocol}`).status) };
      }
      const answer = await watch(directed, deadlineMs(request), gone);
      const parts = answer.lines ?? answer.output;
      if (parts === undefined || !isWebSocket(request)) return answer;
      return { head: answer.head, upgrade: webSocketStream(request, parts) };
    },
  };
}
