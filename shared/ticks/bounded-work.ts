/** Runs many effects, a bounded number at a time, within a time budget. */
import type { Clock } from '../clock.ts';

/** Whether new work may begin. */
export interface WorkBudget {
  hasTime(): boolean;
}

export const workUntil = (clock: Clock, deadlineMs: number): WorkBudget => ({
  hasTime: () => clock.nowMs() < deadlineMs,
});

export interface WorkOutcome {
  /** Items not begun, because the time was over. */
  readonly left: number;
  /** Why single items failed. The others were processed. */
  readonly faults: readonly unknown[];
}

export async function workThrough<T>(
  items: readonly T[],
  options: { readonly concurrencyMax: number; readonly budget: WorkBudget },
  work: (item: T) => Promise<unknown>,
): Promise<WorkOutcome> {
  let next = 0;
  const faults: unknown[] = [];
  const worker = async (): Promise<void> => {
    while (next < items.length && options.budget.hasTime()) {
      const item = items[next]!;
      next += 1;
      try {
        await work(item);
      } catch (fault) {
        faults.push(fault);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.concurrencyMax, items.length) }, worker));
  return { left: items.length - next, faults };
}

/** For a small amount of work that must be done regardless of the time. */
export const UNBOUNDED: WorkBudget = { hasTime: () => true };

/**
 * Runs work over many items in one call. When the call fails, or returns 'split', each half is tried alone, down to
 * single items: a bad item affects only itself. A single item that returns 'split' is left.
 *
 * At most twice as many calls as items. None begins after the budget. In an outage the first call uses up the budget.
 */
export async function workInHalves<T>(
  items: readonly T[],
  budget: WorkBudget,
  work: (part: readonly T[]) => Promise<'done' | 'split'>,
): Promise<WorkOutcome> {
  const faults: unknown[] = [];
  const waiting: (readonly T[])[] = items.length === 0 ? [] : [items];
  let left = 0;
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
    if (!budget.hasTime()) {
      left += part.length;
      continue;
    }
    let isDone = false;
    let fault: { readonly cause: unknown } | undefined;
    try {
      isDone = (await work(part)) === 'done';
    } catch (cause) {
      fault = { cause };
    }
    if (isDone) continue;
    if (part.length > 1) {
      const middle = Math.ceil(part.length / 2);
      waiting.push(part.slice(middle), part.slice(0, middle));
      continue;
    }
    left += 1;
    if (fault !== undefined) faults.push(fault.cause);
  }
  return { left, faults };
}

/** All items, or `itemsMax` of them: a rotation that starts at another item in each slot. */
export function inTurn<T>(all: readonly T[], itemsMax: number, slot: number): readonly T[] {
  if (all.length <= itemsMax) return all;
  const first = (slot * itemsMax) % all.length;
  return [...all.slice(first), ...all.slice(0, first)].slice(0, itemsMax);
}

/** Splits into parts of at most `size` items. */
export function inParts<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let first = 0; first < items.length; first += size) parts.push(items.slice(first, first + size));
  return parts;
}

/** Splits into parts of at most `size` items and `bytesMax` bytes. A larger item is a part of its own. */
export function inPartsOfBytes<T>(
  items: readonly T[],
  size: number,
  bytesMax: number,
  bytesOf: (item: T) => number,
): T[][] {
  const parts: T[][] = [];
  let last: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const more = bytesOf(item);
    if (last.length === 0 || last.length === size || bytes + more > bytesMax) {
      last = [];
      bytes = 0;
      parts.push(last);
    }
    last.push(item);
    bytes += more;
  }
  return parts;
}

export function groupedBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
