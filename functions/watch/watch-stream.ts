/** A watch over an open connection. Kubernetes: "API concepts", efficient detection of changes. */

import { type WatchCall, type WatchEvent, type WatchSource, watchEvents } from '../../shared/api/watch/watch-events.ts';
import { watchEventLine } from '../../shared/api/watch/watch-line.ts';
import { isStatusError } from '../../shared/kubernetes/http.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { whitespace } from '../../shared/watches/stream-form.ts';
import { checkIntervalMs, type FindRefusal } from './revocation.ts';

/** Between two requested bookmarks, as upstream. Milliseconds. */
const BOOKMARK_MS = 60_000;

/** Length from which lines are written without waiting for the other changes of their read. */
const PART_CHARACTERS = 65_536;

/**
 * When a watch ends at the latest. `deadlineMs`: when its function must have sent the last line. Epoch milliseconds.
 */
export const watchEndMs = (nowMs: number, timeoutSeconds: number | undefined, deadlineMs: number): number =>
  timeoutSeconds !== undefined && timeoutSeconds > 0
    ? Math.min(deadlineMs, nowMs + timeoutSeconds * 1_000)
    : deadlineMs;

export interface WatchLimits {
  /** Epoch milliseconds. */
  readonly deadlineMs: number;
  /** A watch without an event for this time ends. Bookmarks do not count. Milliseconds. */
  readonly quietMs: number;
  /** White space after lines (shared/watches/stream-form.ts). Bytes; 0: lines are delivered without it. */
  readonly paddingBytes: number;
  /** undefined: its user is not checked again. */
  readonly findRefusal: FindRefusal | undefined;
  /** Whether the definition of the kind is as it was. Absent: the kind has none. */
  readonly isDefined?: (() => Promise<boolean>) | undefined;
  /** Number of commits that may have withdrawn access. Absent: they are not seen. */
  readonly withdrawals?: (() => number) | undefined;
}

/** Ends the generator of events from within its pauses. */
class WatchEnd extends Error {
  override readonly name = 'WatchEnd';
}

/**
 * Lines until the client's timeout, `deadlineMs`, or a time without events. Lambda does not report that a client has
 * disconnected and discards what is written for it (Lambda Developer Guide, "Response streaming"). So a watch that
 * sends nothing could serve no one: it ends, with a bookmark from which client-go resumes without a list.
 *
 * An expired version, or a fault, ends the lines with an ERROR event, because the head of the response was already
 * sent. So does a user who may no longer watch: no event is sent more than REVOCATION_CHECK_MS after `findRefusal` was
 * last asked, or failed, if access may have been withdrawn. A check that fails does not end the watch: otherwise a
 * store without answers would end all watches. A watch of a custom resource ends when its definition changes, without
 * an ERROR event, as upstream: its client asks for the new form.
 *
 * The lines of one read of the log are one part, up to PART_CHARACTERS. White space follows them, because the function
 * URL may hold them until more is written. A watch begins with white space and its padding, which deliver the head:
 * kubectl to 1.34 cannot end a watch while it waits for the head. No answer is without a byte: the front may not notice
 * the end of such an answer for 16 minutes (aws/aws-lambda-nodejs-runtime-interface-client 95).
 */
export async function* watchLines(
  source: WatchSource,
  call: WatchCall,
  { deadlineMs, quietMs, paddingBytes, findRefusal, isDefined, withdrawals }: WatchLimits,
): AsyncGenerator<string> {
  const { clock } = source;
  const startedMs = clock.nowMs();
  const endMs = watchEndMs(startedMs, call.timeoutSeconds, deadlineMs);
  const request = call.sendInitialEvents ? { ...call, resourceVersion: '' } : call;
  let first = true;
  let bookmarkedMs = startedMs;
  let eventMs = startedMs;
  let reached = '';
  let sent = '';
  let checkedMs = Number.NEGATIVE_INFINITY;
  let checkedWithdrawals = -1;
  const padding = whitespace(paddingBytes);
  /** Whether a line was written after the last padding. */
  let isHeld = false;
  const lineOf = (event: WatchEvent, endsState = false): string => {
    const line = watchEventLine(call.descriptor, event, call.shape, { nowMs: clock.nowMs(), first, endsState });
    first = false;
    isHeld = paddingBytes > 0;
    return line;
  };
  const checkEveryMs = (): number => checkIntervalMs(withdrawals === undefined || withdrawals() !== checkedWithdrawals);
  const isCheckDue = (): boolean => findRefusal !== undefined && clock.nowMs() - checkedMs >= checkEveryMs();
  async function checkRevocation(): Promise<void> {
    if (findRefusal === undefined) return;
    checkedMs = clock.nowMs();
    // Counted before it is asked: a commit during the question makes the next check due.
    checkedWithdrawals = withdrawals?.() ?? -1;
    const refusal = await findRefusal().catch(() => undefined);
    if (refusal !== undefined) throw refusal;
    if ((await isDefined?.().catch(() => true)) === false) throw new WatchEnd();
  }
  // Also between two reads of the change log: a watch without events must end, too.
  const checkedSource: WatchSource = {
    ...source,
    async pause(milliseconds) {
      let leftMs = milliseconds;
      do {
        const quietLeftMs = Math.max(0, eventMs + quietMs - clock.nowMs());
        const sliceMs = Math.min(leftMs, checkEveryMs(), quietLeftMs);
        leftMs = (await source.pause(sliceMs)) === 'changed' ? 0 : leftMs - sliceMs;
        if (isCheckDue()) await checkRevocation();
        if (clock.nowMs() - eventMs >= quietMs) throw new WatchEnd();
      } while (leftMs > 0);
    },
  };
  yield whitespace(Math.max(1, paddingBytes));
  if (paddingBytes > 0) yield padding;
  try {
    for await (const events of watchEvents(checkedSource, request, endMs)) {
      let lines = '';
      for (const event of events) {
        const nowMs = clock.nowMs();
        if (isCheckDue()) {
          if (lines !== '') yield lines;
          lines = '';
          await checkRevocation();
        }
        if (event.type === 'BOOKMARK') {
          reached = event.resourceVersion;
          const endsState = event.endsState && call.sendInitialEvents;
          const due = call.bookmarks && nowMs - bookmarkedMs >= BOOKMARK_MS;
          if (endsState || due) {
            bookmarkedMs = nowMs;
            sent = reached;
            lines += lineOf(event, endsState);
          }
        } else {
          eventMs = nowMs;
          lines += lineOf(event);
        }
        if (lines.length < PART_CHARACTERS) continue;
        yield lines;
        lines = '';
      }
      if (lines !== '') yield lines;
      // A bookmark is the last event of each read of the log that had changes.
      if (isHeld && events.at(-1)?.type === 'BOOKMARK') {
        isHeld = false;
        yield padding;
      }
    }
  } catch (error) {
    if (!(error instanceof WatchEnd)) {
      const { status: object } = isStatusError(error)
        ? error
        : status.internalError('the watch was cut off', { cause: error });
      yield `${JSON.stringify({ type: 'ERROR', object })}\n`;
      if (!isStatusError(error)) throw error;
      return;
    }
  }
  if (call.bookmarks && reached !== sent)
    yield lineOf({ type: 'BOOKMARK', resourceVersion: reached, endsState: false });
}
