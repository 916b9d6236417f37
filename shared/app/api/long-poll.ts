/**
 * A watch as one buffered answer, for an HTTP front that cannot stream: held until there is news or the time is over,
 * then closed; clients resume from the last resourceVersion. The rules below were found with kubectl 1.20 to 1.33 and
 * the JavaScript client; each one that is missing breaks one of them.
 *
 * - Held 20 s at most (the gateway ends at 30 s, one client gives up at 30 s of silence), 2 s for a watch of one object
 *   with a timeout: that is `kubectl wait` and `delete`, which ask once more after they have what they wanted.
 * - Never ended at once and empty: clients without back-off would come back hundreds of times a second.
 * - News ends it after a moment for more to gather; the state that a watch from nothing starts with does not.
 * - The closing bookmark goes to those who asked for bookmarks, and to the JavaScript client, which cannot ask but backs
 *   off after an answer without a line.
 */
import type { HttpResponse } from '../../ports/http.ts';
import type { Shape } from './shape.ts';
import { type WatchEvent, type WatchRequest, type WatchSource, watchEvents } from './watch.ts';
import { watchEventLine } from './watch-line.ts';

const HOLD_SECONDS_MAX = 20;
const HOLD_ONE_OBJECT_SECONDS = 2;
/** After the first event, for others of the same moment. Milliseconds. */
const GATHER_MS = 100;

export interface LongPollRequest extends WatchRequest {
  readonly shape: Shape;
  /** As asked; undefined when not. Seconds. */
  readonly timeoutSeconds: number | undefined;
  readonly bookmarks: boolean;
  /** Tell the state, say that it ends, close. */
  readonly sendInitialEvents: boolean;
}

export function holdSeconds(request: Pick<LongPollRequest, 'timeoutSeconds' | 'fields'>): number {
  const { timeoutSeconds, fields } = request;
  const ofOne = fields.exact('metadata.name') !== undefined && timeoutSeconds !== undefined;
  const most = ofOne ? HOLD_ONE_OBJECT_SECONDS : HOLD_SECONDS_MAX;
  return Math.min(most, timeoutSeconds === undefined || timeoutSeconds <= 0 ? most : timeoutSeconds);
}

export async function answerLongPoll(source: WatchSource, request: LongPollRequest): Promise<HttpResponse> {
  const { clock } = source;
  const endMs = clock.nowMs() + holdSeconds(request) * 1_000;
  const lines: string[] = [];
  let deadlineMs = endMs;
  let through: string | undefined;
  const told = (event: WatchEvent, endsState = false) =>
    lines.push(
      watchEventLine(request.descriptor, event, request.shape, {
        nowMs: clock.nowMs(),
        first: lines.length === 0,
        endsState,
      }),
    );
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
      if (!event.fromState) deadlineMs = Math.min(deadlineMs, clock.nowMs() + GATHER_MS);
    }
    // A bookmark closes each look at the log: what was committed together is told together.
    if (event.type === 'BOOKMARK' && deadlineMs < endMs) break;
  }
  if (request.bookmarks) {
    const resourceVersion = through ?? request.resourceVersion;
    if (resourceVersion !== '' && resourceVersion !== '0')
      told({ type: 'BOOKMARK', resourceVersion, endsState: false });
  }
  return body(lines);
}

const body = (lines: readonly string[]): HttpResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
  body: lines.join(''),
});
