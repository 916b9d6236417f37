/**
 * Which nodes EC2 is asked about at a tick. Up to 2,000 nodes are due at every tick. Beyond that a node is due when its
 * polling interval has passed since EC2 was last asked about it.
 *
 * The time is stored for 128 groups of nodes, by the hash of the name: one read and one write per tick, half a read
 * unit and 3 write units, and only beyond 2,000 nodes. A time for each node would be 2,000 writes per tick in one
 * partition. A tick that is missed or killed delays a group until the next tick, because the group stays due. Slots
 * chosen by arithmetic would be missed again and again: ticks that run once per minute only meet every twelfth slot.
 */
import { textHash } from '../../text.ts';
import type { CloudSeen, PollClass, PollStrides } from './watch-list.rule.ts';

const POLL_GROUPS = 128;
/** A row is compared with its Node after this time, and after up to as much again by the hash of its name. Seconds. */
const COMPARE_AFTER_SECONDS = 300;

interface PolledRow {
  readonly nodeName: string;
  readonly seen: CloudSeen;
}

/** When EC2 was last asked about each group, by class of its nodes. Seconds since the epoch; 0 for never. Stored. */
export type AskedSeconds = Readonly<Partial<Record<PollClass, readonly number[]>>>;

export interface PollPlan<Row> {
  readonly due: readonly Row[];
  /** The times to store after these rows were processed; undefined when nothing changes. */
  askedAfter(processed: ReadonlySet<Row>): AskedSeconds | undefined;
}

interface PollTick {
  /** Start of the tick's slot. Epoch milliseconds. */
  readonly slotStartMs: number;
  readonly periodSeconds: number;
  readonly asked: AskedSeconds;
}

const groupOf = ({ nodeName }: PolledRow): number => textHash(nodeName) % POLL_GROUPS;

export function planPolls<Row extends PolledRow>(
  rows: readonly Row[],
  strides: PollStrides,
  tick: PollTick,
): PollPlan<Row> {
  const due: Row[] = [];
  const groups = new Map<PollClass, ReadonlyMap<number, readonly Row[]>>();
  for (const each of ['open', 'longSame'] as const) {
    const ofClass = rows.filter((row) => strides.classOf(row) === each);
    if (strides[each] === 1) {
      due.push(...ofClass);
      continue;
    }
    const dueGroups = groupsDue(ofClass, strides[each], strides.perTick[each], tick.asked[each] ?? [], tick);
    groups.set(each, dueGroups);
    for (const group of dueGroups.values()) due.push(...group);
  }
  const asked = Math.floor(tick.slotStartMs / 1_000);
  return {
    due,
    askedAfter(processed) {
      const next: Partial<Record<PollClass, readonly number[]>> = { ...tick.asked };
      for (const [each, ofClass] of groups) {
        next[each] = Array.from({ length: POLL_GROUPS }, (_, group) => {
          const isAsked = ofClass.get(group)?.every((row) => processed.has(row)) === true;
          return isAsked ? asked : (tick.asked[each]?.[group] ?? 0);
        });
      }
      return groups.size === 0 ? undefined : next;
    },
  };
}

/** Groups that have waited for their interval, longest waiting first, until they have `perTick` rows. */
function groupsDue<Row extends PolledRow>(
  rows: readonly Row[],
  stride: number,
  perTick: number,
  asked: readonly number[],
  { slotStartMs, periodSeconds }: PollTick,
): ReadonlyMap<number, readonly Row[]> {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const group = groups.get(groupOf(row));
    if (group === undefined) groups.set(groupOf(row), [row]);
    else group.push(row);
  }
  const nowSeconds = slotStartMs / 1_000;
  const askedAt = (group: number): number => asked[group] ?? 0;
  // A time in the future comes from a clock that was set back.
  const isDue = (group: number): boolean =>
    askedAt(group) > nowSeconds || nowSeconds - askedAt(group) >= stride * periodSeconds;
  const waiting = [...groups.keys()].filter(isDue).sort((one, other) => askedAt(one) - askedAt(other) || one - other);
  const chosen = new Map<number, readonly Row[]>();
  let count = 0;
  for (const group of waiting) {
    if (count >= perTick) break;
    const members = groups.get(group)!;
    chosen.set(group, members);
    count += members.length;
  }
  return chosen;
}

/** Whether the row is compared with its Node at its next answer. Repairs the effect of a lost stream record. */
export function isComparisonDue({ nodeName, seen: { comparedMs } }: PolledRow, nowMs: number): boolean {
  const afterSeconds = COMPARE_AFTER_SECONDS + (textHash(nodeName) % COMPARE_AFTER_SECONDS);
  return comparedMs !== undefined && nowMs - comparedMs >= afterSeconds * 1_000;
}
