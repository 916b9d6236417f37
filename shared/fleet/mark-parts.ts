/**
 * Parts of a mass failure: what node-monitor sends to the queue of node-marker (docs/decisions/0027).
 *
 *   nodes       silent nodes of one shard, to be marked Unknown. Valid until `untilMs`.
 *   followUp    nodes that were marked: their events, and their pods.
 *
 * A part carries names, not states. node-marker reads each node again and evaluates the rule for it, so a part that is
 * late, doubled or repeated marks no node that has sent a heartbeat since.
 */
import type { TickMark } from '../decisions/ledger.ts';
import { groupedBy, inParts } from '../ticks/bounded-work.ts';
import type { SentParts } from './fleet-store.ts';
import type { MarkToDo } from './mark-nodes.ts';
import type { ZoneMetrics } from './zone-state.ts';

/**
 * Nodes in one part: eight commits, one after the other. Parts of one shard that run at once cancel each other's
 * commits, so few large parts need fewer transactions than many small ones. With the longest names a part has 62 KB.
 */
const NODES_PER_PART_MAX = 240;
/** A part is valid for this time, or for one period if that is longer. Then the nodes that it left are sent again. */
const PART_VALID_MS = 15_000;
/** Events and pods follow a mark that is stored. They are worth more time. */
const FOLLOW_UP_VALID_MS = 60_000;

interface PartOfTick extends Required<TickMark> {
  /** When the tick decided: the rule is evaluated for this moment. Epoch milliseconds. */
  readonly decidedAtMs: number;
  /** No work begins after it. Epoch milliseconds. */
  readonly untilMs: number;
}

export interface NodesPart extends PartOfTick {
  readonly part: 'nodes';
  /** Names of nodes that were Ready. */
  readonly ready: readonly string[];
  /** Names of nodes that were not. */
  readonly notReady: readonly string[];
  /** For decision records: the zones of these nodes after the tick's marks. */
  readonly zones: readonly ZoneMetrics[];
}

export interface FollowUpPart extends PartOfTick {
  readonly part: 'followUp';
  /** Nodes that lost Ready by their mark. */
  readonly events: readonly { readonly nodeName: string; readonly uid: string }[];
  /** Names of nodes with Ready pods. */
  readonly pods: readonly string[];
}

export type MarkPart = NodesPart | FollowUpPart;

export const partValidMs = (periodSeconds: number): number => Math.max(PART_VALID_MS, periodSeconds * 1_000);

const isRecent = (atMs: number, nowMs: number, validMs: number): boolean => Math.abs(nowMs - atMs) < validMs;

/**
 * Whether a valid part has this node: it was silent already at the last tick that sent parts, and the last tick that
 * sent every silent node is recent. Two times describe all parts, whatever their number:
 *   - A tick without a recent full one sends every silent node.
 *   - Each other tick sends the nodes that became silent since the last one.
 */
export const isSent = (
  silentSinceMs: number,
  sent: SentParts | undefined,
  at: { readonly nowMs: number; readonly validMs: number },
): boolean => sent !== undefined && isRecent(sent.fullAtMs, at.nowMs, at.validMs) && silentSinceMs < sent.lastAtMs;

/** The record after a tick that sent parts. */
export const sentAfter = (
  sent: SentParts | undefined,
  at: { readonly nowMs: number; readonly validMs: number },
): SentParts =>
  sent !== undefined && isRecent(sent.fullAtMs, at.nowMs, at.validMs)
    ? { fullAtMs: sent.fullAtMs, lastAtMs: at.nowMs }
    : { fullAtMs: at.nowMs, lastAtMs: at.nowMs };

/** Whether the pods of a node that was marked then may still be waiting for their follow-up part. */
export const awaitsFollowUp = (markedAtMs: number | undefined, sent: SentParts | undefined, nowMs: number): boolean =>
  sent !== undefined &&
  markedAtMs !== undefined &&
  isRecent(sent.lastAtMs, nowMs, FOLLOW_UP_VALID_MS) &&
  isRecent(markedAtMs, nowMs, FOLLOW_UP_VALID_MS);

/**
 * The parts of a tick, each of one shard of Nodes: its commits then change one head of the change log. Neighbours in
 * the list are of different shards: parts that run at once rarely conflict.
 */
export function nodesParts(
  todo: readonly MarkToDo[],
  at: {
    readonly nowMs: number;
    readonly validMs: number;
    readonly tick: Required<TickMark>;
    readonly zones: ReadonlyMap<string, ZoneMetrics>;
    readonly shardOf: (nodeName: string) => number;
  },
): { readonly part: NodesPart; readonly todo: readonly MarkToDo[] }[] {
  const byShard = [...groupedBy(todo, ({ decision }) => at.shardOf(decision.nodeName)).values()].map((ofShard) =>
    inParts(ofShard, NODES_PER_PART_MAX),
  );
  const rounds = Math.max(0, ...byShard.map((parts) => parts.length));
  const inTurn = Array.from({ length: rounds }, (_, round) =>
    byShard.flatMap((parts) => parts.slice(round, round + 1)),
  );
  return inTurn.flat().map((nodes) => {
    const namesOf = (wasReady: boolean): string[] =>
      nodes.flatMap(({ decision }) => ((decision.from === 'True') === wasReady ? [decision.nodeName] : []));
    const zones = new Set(nodes.map(({ decision }) => decision.zone));
    const part: NodesPart = {
      part: 'nodes',
      slot: at.tick.slot,
      fence: at.tick.fence,
      decidedAtMs: at.nowMs,
      untilMs: at.nowMs + at.validMs,
      ready: namesOf(true),
      notReady: namesOf(false),
      zones: [...zones].flatMap((zone) => at.zones.get(zone) ?? []),
    };
    return { part, todo: nodes };
  });
}

export const followUpOf = (
  { slot, fence, decidedAtMs }: NodesPart,
  { events, pods }: Pick<FollowUpPart, 'events' | 'pods'>,
): FollowUpPart => ({
  part: 'followUp',
  slot,
  fence,
  decidedAtMs,
  untilMs: decidedAtMs + FOLLOW_UP_VALID_MS,
  events,
  pods,
});

const isText = (value: unknown): value is string => typeof value === 'string';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isObjects = (value: unknown, ...texts: readonly string[]): boolean =>
  Array.isArray(value) &&
  value.every((each: unknown) => {
    const object = (each ?? {}) as Readonly<Record<string, unknown>>;
    return texts.every((name) => isText(object[name]));
  });

/** The part in a message; undefined for a malformed one. */
export function partIn(body: string): MarkPart | undefined {
  let message: unknown;
  try {
    message = JSON.parse(body);
  } catch {
    return undefined;
  }
  const part = (message ?? {}) as Readonly<Record<string, unknown>>;
  if (![part['slot'], part['fence'], part['decidedAtMs'], part['untilMs']].every(Number.isFinite)) return undefined;
  const isValid =
    part['part'] === 'nodes'
      ? isTexts(part['ready']) && isTexts(part['notReady']) && isObjects(part['zones'], 'zone')
      : part['part'] === 'followUp' && isObjects(part['events'], 'nodeName', 'uid') && isTexts(part['pods']);
  return isValid ? (message as MarkPart) : undefined;
}

/** The queue of parts of work for other processes. A message may be delivered late, twice, or not at all. */
export interface PartQueue {
  /** Sends messages. Returns the positions of those that were not accepted. Never rejects. */
  send(bodies: readonly string[], nowMs: number): Promise<readonly number[]>;
  /**
   * Hides a received message for whole seconds, after which it is delivered again.
   * @throws Error when the queue did not accept it
   */
  postpone(receiptHandle: string, at: { readonly delaySeconds: number; readonly nowMs: number }): Promise<void>;
}
