import { setTimeout as pause } from 'node:timers/promises';

/** Longest orderly end. Milliseconds. */
const STOP_MS = 4_000;

/** What a process has opened, to close it in the opposite order. */
export interface UndoList {
  push(step: () => unknown): void;
  all(): Promise<void>;
  /** The same, for STOP_MS at most, once. */
  stop(): Promise<void>;
}

export function undoList(): UndoList {
  const steps: (() => unknown)[] = [];
  let ending: Promise<void> | undefined;
  const all = async (): Promise<void> => {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step();
  };
  return {
    push: (step) => void steps.push(step),
    all,
    stop: () => (ending ??= Promise.race([all(), pause(STOP_MS, undefined, { ref: false })])),
  };
}
