/**
 * A watch as one buffered answer, for an HTTP front that cannot stream: held until there is news or the time is over,
 * then closed; clients resume from the last resourceVersion. The rules below were found with kubectl 1.20 to 1.33 and
 * the JavaScript client; each one that is missing breaks one of them.
 *
 * - Held 20 s at most (the gateway ends at 30 s, one client gives up at 30 s of silence), 2 s for a watch of one object
 *   with a timeout: that is `kubectl wait` and `delete`, which ask once more after they have what they wanted.
 * - Never ended at once and empty: clients without back-off would come back hundreds of times a second.
 * - News ends it, with all that came since the look before; the state that a watch from nothing starts with does not.
 * - The closing bookmark goes to those who asked for bookmarks, and to the JavaScript client, which cannot ask but backs
 *   off after an answer without a line.
 */
import * as status from '../../kube/status.ts';
import { forbiddenField } from '../../kube/validation/causes.ts';
import type { HttpResponse } from '../../ports/http.ts';
import { type WatchCall, type WatchEvent, type WatchSource, watchEvents } from './watch.ts';
import { watchEventLine } from './watch-line.ts';

const HOLD_SECONDS_MAX = 20;
const HOLD_ONE_OBJECT_SECONDS = 2;

/** JSON of all lines at which an answer ends; the platform takes 6 MB, encoded once more. Characters. */
const CHARACTERS_MAX = 1_900_000;

function holdSeconds(request: Pick<WatchCall, 'timeoutSeconds' | 'fields'>): number {
  const { timeoutSeconds, fields } = request;
  const ofOne = fields.exact('metadata.name') !== undefined && timeoutSeconds !== undefined;
  const most = ofOne ? HOLD_ONE_OBJECT_SECONDS : HOLD_SECONDS_MAX;
  return Math.min(most, timeoutSeconds === undefined || timeoutSeconds <= 0 ? most : timeoutSeconds);
}

export async function answerLongPoll(source: WatchSource, request: WatchCall): Promise<HttpResponse> {
  const { clock } = source;
  const endMs = clock.nowMs() + holdSeconds(request) * 1_000;
  const lines: string[] = [];
  let characters = 0;
  let hasNews = false;
  let through: string | undefined;
  const told = (event: WatchEvent, endsState = false): void => {
    const line = watchEventLine(request.descriptor, event, request.shape, {
      nowMs: clock.nowMs(),
      first: lines.length === 0,
      endsState,
    });
    characters += line.length;
    lines.push(line);
  };
  const events = watchEvents(source, request.sendInitialEvents ? { ...request, resourceVersion: '' } : request, endMs);
  for await (const event of events) {
    if (event.type === 'BOOKMARK') {
      through = event.resourceVersion;
      if (event.endsState && request.sendInitialEvents) {
        told(event, true);
        return body(lines);
      }
    } else {
      told(event);
      if (!event.fromState) hasNews = true;
      if (characters > CHARACTERS_MAX) {
        if (event.fromState) throw stateTooLarge(request);
        // What is not told yet comes after the version of the last line, where the client will go on.
        return body(lines);
      }
    }
    // A bookmark closes each look at the log: what came between two looks is told together.
    if (event.type === 'BOOKMARK' && hasNews) break;
  }
  if (request.bookmarks) {
    const resourceVersion = through ?? request.resourceVersion;
    if (resourceVersion !== '' && resourceVersion !== '0')
      told({ type: 'BOOKMARK', resourceVersion, endsState: false });
  }
  return body(lines);
}

/** Sends clients to the list, which has pages; those that asked for the state in a watch know to do so on a 422. */
function stateTooLarge(request: WatchCall): status.StatusError {
  const why = 'there are too many objects to be told by one watch; list them and watch from there';
  if (!request.sendInitialEvents) return status.expired(why);
  return status.invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [forbiddenField('sendInitialEvents', why)]);
}

const body = (lines: readonly string[]): HttpResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
  body: lines.join(''),
});
