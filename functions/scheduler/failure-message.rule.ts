/**
 * The text of the PodScheduled condition and of the event FailedScheduling, as upstream composes it.
 *
 * Source: FitError in pkg/scheduler/framework/types.go, truncateMessage in pkg/scheduler/schedule_one.go.
 */
import { utf8Bytes } from '../../shared/text.ts';

export const NO_NODES = 'no nodes available to schedule pods';
/** The limit for the note of an event, in bytes. */
const NOTE_BYTES_MAX = 1_024;
const ENDING = ' ...';

/** ` 3 node(s) were unschedulable, 10 Insufficient cpu.`: sorted as texts, so 10 is before 2. */
export function countedReasons(counts: ReadonlyMap<string, number>): string {
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return parts.length === 0 ? '' : ` ${parts.join(', ')}.`;
}

/** `0/5 nodes are available: 5 Insufficient cpu.`, without preemption. */
export const availability = (nodes: number, counts: ReadonlyMap<string, number>): string =>
  `0/${nodes} nodes are available:${countedReasons(counts)}`;

/** For the note of an event: 1,024 bytes at most. */
export function eventNote(message: string): string {
  if (utf8Bytes(message) <= NOTE_BYTES_MAX) return message;
  let cut = message.slice(0, NOTE_BYTES_MAX - ENDING.length);
  while (utf8Bytes(cut) > NOTE_BYTES_MAX - ENDING.length) cut = cut.slice(0, -1);
  return cut + ENDING;
}
