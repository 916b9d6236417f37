/** The work of a page in a trace of Chromium. */

/** As far as it is read. Times in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** CPU time of the thread. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

const TASK = 'ThreadControllerImpl::RunTask';
const MAIN_THREAD = 'CrRendererMain';
/** What follows a change within this time is one update: its work and its frame. Microseconds. */
const UPDATE_US = 100_000;
const MIN_MS = 1;

/** CPU of each update of the busiest renderer, in milliseconds. Less than 1 ms is no update. */
export function mainThreadUpdates(events: readonly TraceEvent[]): readonly number[] {
  const threads = events.filter(({ name, args }) => name === 'thread_name' && args?.name === MAIN_THREAD);
  const all = threads.map((thread) =>
    updatesOf(
      events
        .filter(({ name, ph, pid, tid }) => name === TASK && ph === 'X' && pid === thread.pid && tid === thread.tid)
        .toSorted((one, other) => one.ts - other.ts),
    ),
  );
  const total = (updates: readonly number[]): number => updates.reduce((sum, each) => sum + each, 0);
  return all.toSorted((one, other) => total(other) - total(one))[0] ?? [];
}

function updatesOf(tasks: readonly TraceEvent[]): readonly number[] {
  const updates: number[] = [];
  let startUs = Number.NEGATIVE_INFINITY;
  let untilUs = Number.NEGATIVE_INFINITY;
  for (const { ts, dur = 0, tdur = dur } of tasks) {
    // A task within another one is a part of it.
    if (ts < untilUs) continue;
    untilUs = ts + dur;
    if (ts - startUs >= UPDATE_US) {
      startUs = ts;
      updates.push(0);
    }
    updates[updates.length - 1]! += tdur / 1_000;
  }
  return updates.filter((each) => each >= MIN_MS);
}
