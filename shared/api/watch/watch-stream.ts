/** A watch over an open connection. Kubernetes: "API concepts", efficient detection of changes. */

import { isStatusError } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import { type WatchCall, type WatchSource, watchEvents } from './watch-events.ts';
import { watchEventLine } from './watch-line.ts';

/** Between two requested bookmarks, as upstream. Milliseconds. */
const BOOKMARK_MS = 60_000;

/**
 * Lines until the client's timeout or `deadlineMs`. An expired version, or a fault, ends them with an ERROR event, because
 * the head of the response was already sent.
 */
export async function* watchLines(source: WatchSource, call: WatchCall, deadlineMs: number): AsyncGenerator<string> {
  const { clock } = source;
  const startedMs = clock.nowMs();
  const { timeoutSeconds = 0 } = call;
  const endMs = timeoutSeconds > 0 ? Math.min(deadlineMs, startedMs + timeoutSeconds * 1_000) : deadlineMs;
  const request = call.sendInitialEvents ? { ...call, resourceVersion: '' } : call;
  let first = true;
  let bookmarkedMs = startedMs;
  try {
    for await (const event of watchEvents(source, request, endMs)) {
      const nowMs = clock.nowMs();
      if (event.type === 'BOOKMARK') {
        const endsState = event.endsState && call.sendInitialEvents;
        const due = call.bookmarks && nowMs - bookmarkedMs >= BOOKMARK_MS;
        if (!endsState && !due) continue;
        bookmarkedMs = nowMs;
        yield watchEventLine(call.descriptor, event, call.shape, { nowMs, first, endsState });
      } else {
        yield watchEventLine(call.descriptor, event, call.shape, { nowMs, first });
      }
      first = false;
    }
  } catch (error) {
    const { status: object } = isStatusError(error)
      ? error
      : status.internalError('the watch was cut off', { cause: error });
    yield `${JSON.stringify({ type: 'ERROR', object })}\n`;
    if (!isStatusError(error)) throw error;
  }
}
