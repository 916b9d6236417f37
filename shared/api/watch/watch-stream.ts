/** A watch over an open connection. Kubernetes: "API concepts", efficient detection of changes. */

import { isStatusError } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import { type IsStillAllowed, REVOCATION_CHECK_MS } from './revocation.ts';
import { type WatchCall, type WatchSource, watchEvents } from './watch-events.ts';
import { watchEventLine } from './watch-line.ts';

/** Between two requested bookmarks, as upstream. Milliseconds. */
const BOOKMARK_MS = 60_000;

/**
 * Lines until the client's timeout or `deadlineMs`. An expired version, or a fault, ends them with an ERROR event, because
 * the head of the response was already sent. So does a revoked identity: no event is sent more than REVOCATION_CHECK_MS
 * after `isStillAllowed` was last true, or failed. A check that fails does not end the watch: otherwise a store without
 * answers would end all watches.
 */
export async function* watchLines(
  source: WatchSource,
  call: WatchCall,
  deadlineMs: number,
  isStillAllowed: IsStillAllowed | undefined,
): AsyncGenerator<string> {
  const { clock } = source;
  const startedMs = clock.nowMs();
  const { timeoutSeconds = 0 } = call;
  const endMs = timeoutSeconds > 0 ? Math.min(deadlineMs, startedMs + timeoutSeconds * 1_000) : deadlineMs;
  const request = call.sendInitialEvents ? { ...call, resourceVersion: '' } : call;
  let first = true;
  let bookmarkedMs = startedMs;
  let checkedMs = Number.NEGATIVE_INFINITY;
  async function checkRevocation(): Promise<void> {
    const nowMs = clock.nowMs();
    if (isStillAllowed === undefined || nowMs - checkedMs < REVOCATION_CHECK_MS) return;
    checkedMs = nowMs;
    if (!(await isStillAllowed().catch(() => true))) throw status.unauthorized();
  }
  // Also between two reads of the change log: a watch without events must end, too.
  const checkedSource: WatchSource = {
    ...source,
    async pause(milliseconds) {
      await source.pause(milliseconds);
      await checkRevocation();
    },
  };
  try {
    for await (const event of watchEvents(checkedSource, request, endMs)) {
      const nowMs = clock.nowMs();
      await checkRevocation();
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
