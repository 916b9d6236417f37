/**
 * Time of a simulation: actions in order of their time, one after the other. Between two of them all code runs until it
 * waits for time again. So a run depends on its inputs alone.
 */
export interface VirtualTime {
  /** True time. Epoch milliseconds. */
  nowMs(): number;
  /** Things that happened so far. */
  steps(): number;
  /** The first that was requested for a moment happens first. */
  after(delayMs: number, happen: () => void): void;
  sleep(delayMs: number): Promise<void>;
  /** Until that moment, or until `stop` answers true after a step. @throws RangeError when there are too many steps */
  run(untilMs: number, afterStep: () => boolean | Promise<boolean>): Promise<void>;
}

interface Happening {
  readonly atMs: number;
  readonly order: number;
  readonly happen: () => void;
}

/** A bound on runs that never come to rest. */
const STEPS_MAX = 200_000_000;

/** `settled`: all that follows from what has just happened, up to the next wait for virtual time, has run. */
export function virtualTime(startMs: number, settled: () => Promise<void> = turnOfEventLoop): VirtualTime {
  const heap: Happening[] = [];
  let nowMs = startMs;
  let asked = 0;
  let steps = 0;

  const isBefore = (one: Happening, other: Happening): boolean =>
    one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);

  function push(happening: Happening): void {
    let index = heap.length;
    heap.push(happening);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(happening, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = happening;
  }

  function pop(): Happening {
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }

  const after = (delayMs: number, happen: () => void): void => {
    asked += 1;
    push({ atMs: nowMs + Math.max(0, Math.round(delayMs)), order: asked, happen });
  };

  return {
    nowMs: () => nowMs,
    steps: () => steps,
    after,
    sleep: (delayMs) => new Promise((resolve) => after(delayMs, resolve)),
    async run(untilMs, afterStep) {
      // What was begun before the first step comes as far as it can.
      await settled();
      while (heap.length > 0 && heap[0]!.atMs <= untilMs) {
        if (steps === STEPS_MAX) throw new RangeError(`more than ${STEPS_MAX} steps`);
        const { atMs, happen } = pop();
        nowMs = atMs;
        steps += 1;
        happen();
        await settled();
        const stop = afterStep();
        if (stop === true || (stop !== false && (await stop))) return;
      }
      nowMs = Math.max(nowMs, untilMs);
    },
  };
}

/** Enough for tables in memory, which answer at once. */
const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An answer that never comes: its process has exited. */
export const never = <T>(): Promise<T> => new Promise(() => undefined);
