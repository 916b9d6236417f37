/**
 * A watch as one buffered response, for an HTTP front that cannot stream. It is held until there are changes or the
 * time is over. Clients resume from the last resourceVersion. The rules below were found with kubectl 1.20 to 1.33 and
 * the JavaScript client. Without any one of them, one of these clients fails.
 *
 * - Held 20 s at most. The gateway times out after 30 s, and one client after 30 s without data.
 * - Held 2 s at most for a watch of one object with a timeout. `kubectl wait` and `kubectl delete` send those, and send
 *   one more when they already have the result.
 * - Never an immediate empty response: clients without back-off would repeat it hundreds of times per second.
 * - Changes end it, together with all changes of the same read. The initial state of a watch does not end it.
 * - The closing bookmark is for clients that asked for bookmarks, and for the JavaScript client. That client cannot
 *   ask, but backs off after a response without a line.
 */

import { forbiddenField } from '../../kubernetes/causes.ts';
import type { HttpResponse } from '../../kubernetes/http.ts';
import * as status from '../../kubernetes/status.ts';
import { type WatchCall, type WatchEvent, type WatchSource, watchEvents } from './watch-events.ts';
import { watchEventLine } from './watch-line.ts';

const HOLD_SECONDS_MAX = 20;
const HOLD_ONE_OBJECT_SECONDS = 2;

/** Length of all lines at which a response ends. The platform allows 6 MB, encoded once more. Characters. */
const CHARACTERS_MAX = 1_900_000;

function holdSeconds(request: Pick<WatchCall, 'timeoutSeconds' | 'fields'>): number {
  const { timeoutSeconds, fields } = request;
  const isOfOneObject = fields.exact('metadata.name') !== undefined && timeoutSeconds !== undefined;
  const maxSeconds = isOfOneObject ? HOLD_ONE_OBJECT_SECONDS : HOLD_SECONDS_MAX;
  return timeoutSeconds === undefined || timeoutSeconds <= 0 ? maxSeconds : Math.min(maxSeconds, timeoutSeconds);
}

export async function answerLongPoll(source: WatchSource, request: WatchCall): Promise<HttpResponse> {
  const { clock } = source;
  const endMs = clock.nowMs() + holdSeconds(request) * 1_000;
  const lines: string[] = [];
  let characters = 0;
  let hasChanges = false;
  let through: string | undefined;
  const addLine = (event: WatchEvent, endsState = false): void => {
    const line = watchEventLine(request.descriptor, event, request.shape, {
      nowMs: clock.nowMs(),
      first: lines.length === 0,
      endsState,
    });
    characters += line.length;
    lines.push(line);
  };
  const batches = watchEvents(source, request.sendInitialEvents ? { ...request, resourceVersion: '' } : request, endMs);
  for await (const event of eventsOf(batches)) {
    if (event.type === 'BOOKMARK') {
      through = event.resourceVersion;
      if (event.endsState && request.sendInitialEvents) {
        addLine(event, true);
        return responseOf(lines);
      }
    } else {
      addLine(event);
      if (!event.fromState) hasChanges = true;
      if (characters > CHARACTERS_MAX) {
        if (event.fromState) throw stateTooLarge(request);
        // Later changes have versions after the last line, where the client resumes.
        return responseOf(lines);
      }
    }
    // A bookmark ends each read of the log. All changes of one read belong in one response.
    if (event.type === 'BOOKMARK' && hasChanges) break;
  }
  if (request.bookmarks) {
    const resourceVersion = through ?? request.resourceVersion;
    if (resourceVersion !== '' && resourceVersion !== '0')
      addLine({ type: 'BOOKMARK', resourceVersion, endsState: false });
  }
  return responseOf(lines);
}

async function* eventsOf(batches: AsyncIterable<readonly WatchEvent[]>): AsyncGenerator<WatchEvent> {
  for await (const events of batches) yield* events;
}

/** Makes the client list instead, because lists have pages. Clients of sendInitialEvents do that after a 422. */
function stateTooLarge(request: WatchCall): status.StatusError {
  const why = 'there are too many objects for one watch response; list them and watch from there';
  if (!request.sendInitialEvents) return status.expired(why);
  return status.invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [forbiddenField('sendInitialEvents', why)]);
}

const responseOf = (lines: readonly string[]): HttpResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
  body: lines.join(''),
});
