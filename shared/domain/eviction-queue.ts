/**
 * Nodes that wait for their zone's limiter, and the names already dealt with.
 *
 * A processed name leaves the queue but stays among the seen ones, and is refused until it is removed: so a controller
 * that does not yet see its own effect does not do it twice. The stored queue of the product needs no second set: what was
 * dealt with shows in the node's digest (NodeHealth.noExecute), and one that is waiting is not stamped again (L10), so the
 * order is that of the first enqueueing.
 *
 * Source: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go. Left out on purpose: a token taken for an item
 * that is not due (D4).
 */
export interface QueueItem {
  readonly nodeName: string;
  /** uid of the Node meant; an item of a Node since re-created is dropped (D2). */
  readonly uid: string;
  /** When it was enqueued. Epoch milliseconds. */
  readonly addedAtMs: number;
  /** Not before then. Epoch milliseconds. */
  readonly processAtMs: number;
}

export interface EvictionQueue {
  /** Earliest first. */
  readonly items: readonly QueueItem[];
  readonly seen: ReadonlySet<string>;
}

export const EMPTY_QUEUE: EvictionQueue = Object.freeze({ items: Object.freeze([]), seen: new Set<string>() });

/** Order of turns: due time, then time of enqueueing, then name, so that it never depends on how a list was read. */
export function compareTurns(a: QueueItem, b: QueueItem): number {
  if (a.processAtMs !== b.processAtMs) return a.processAtMs - b.processAtMs;
  if (a.addedAtMs !== b.addedAtMs) return a.addedAtMs - b.addedAtMs;
  if (a.nodeName === b.nodeName) return 0;
  return a.nodeName < b.nodeName ? -1 : 1;
}

/** Refused (the same queue comes back) while the name is among the seen ones, waiting or dealt with. */
export function addToQueue(
  queue: EvictionQueue,
  node: { readonly nodeName: string; readonly uid: string },
  nowMs: number,
): EvictionQueue {
  if (queue.seen.has(node.nodeName)) return queue;
  const item: QueueItem = { nodeName: node.nodeName, uid: node.uid, addedAtMs: nowMs, processAtMs: nowMs };
  return { items: [...queue.items, item].sort(compareTurns), seen: new Set(queue.seen).add(node.nodeName) };
}

/** Forgets a name, waiting or dealt with; the same queue comes back when it was not known. */
export function removeFromQueue(queue: EvictionQueue, nodeName: string): EvictionQueue {
  if (!queue.seen.has(nodeName)) return queue;
  const seen = new Set(queue.seen);
  seen.delete(nodeName);
  return { items: queue.items.filter((item) => item.nodeName !== nodeName), seen };
}

/** Swaps the item of a name that is still waiting; the same queue comes back when it is not. */
export const replaceInQueue = (queue: EvictionQueue, replacement: QueueItem): EvictionQueue =>
  queue.items.some((item) => item.nodeName === replacement.nodeName)
    ? {
        ...queue,
        items: queue.items
          .map((item) => (item.nodeName === replacement.nodeName ? replacement : item))
          .sort(compareTurns),
      }
    : queue;

/** Dealt with: out of the queue, still seen. */
export const markProcessed = (queue: EvictionQueue, nodeName: string): EvictionQueue => ({
  ...queue,
  items: queue.items.filter((item) => item.nodeName !== nodeName),
});

/** Not now: due again strictly after `notUntilMs`, if it is still waiting. */
export const retryAfter = (queue: EvictionQueue, item: QueueItem, notUntilMs: number): EvictionQueue =>
  replaceInQueue(queue, { ...item, processAtMs: notUntilMs + 1 });

/** The item whose turn it is; undefined when none is due. */
export const dueHead = (queue: EvictionQueue, nowMs: number): QueueItem | undefined => {
  const head = queue.items[0];
  return head !== undefined && head.processAtMs <= nowMs ? head : undefined;
};
