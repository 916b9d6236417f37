/**
 * Moves a cluster (docs/decisions/0059-moving-a-cluster.md). Each step is durable before the next, and each can be
 * repeated: a move that was killed is run again with the same arguments.
 *
 *   1. Source: fence. Writes are refused from here on.
 *   2. Destination: `copying`. Only an empty store becomes a destination, and only of one move.
 *   3. Copy the rows, count and hash them on both sides.
 *   4. Source: the fence says that the destination may be open.
 *   5. Destination: `ready`. Whoever opens it changes `ready` to `open`; whoever abandons the move changes it to
 *      `abandoned`. One conditional write decides, so there are never two clusters.
 *   6. Source: names the new address to its clients.
 *
 * Why a fence that was lifted never has an open destination (interleavings.test.ts searches for one):
 *
 * - The fence changes from absent to {id, not ready}, then to {id, ready}, then to absent again. The id is new for each
 *   move. Every change of it is one conditional write on the whole former state, so a command that acts on an
 *   older state changes nothing.
 * - A destination is opened only when it is `ready`, and `ready` is written after step 4.
 * - `--abandon` lifts {id, not ready} without a decision at the destination. Of this write and step 4 only one
 *   succeeds: both expect the same state. If the fence is lifted, the move ends at step 4 and is never `ready`. If step
 *   4 succeeds, the fence stays, however long ago `--abandon` read it and the destination.
 * - `--abandon` lifts {id, ready} after it has written `abandoned` at the destination. No write leaves `abandoned`.
 * - A destination that is not `open` is never fenced, so its rows are not copied to a third place behind this argument.
 */
import type { ClusterAddress } from '../../shared/agents/moved-cluster.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { objectPartition } from '../../shared/store/layout.ts';
import {
  ARRIVAL_KEY,
  type Arrival,
  type ArrivalPhase,
  arrivalOf,
  type Fence,
  type FenceState,
} from '../../shared/store/move-rows.ts';
import { copyRows, differenceOf, isEmpty, type RowSums, rowSums } from './copy-rows.ts';

/** Rows that expire within this time may be deleted while they are compared. Seconds. */
const EXPIRY_SECONDS = 3_600;

/** What the user can put right, in one line. */
export class MoveError extends Error {
  override readonly name = 'MoveError';
}

type MovedRows = Pick<ItemStore, 'query' | 'scan'>;

export interface MoveSource {
  fence(): Promise<Fence | undefined>;
  /**
   * Sets the fence, or lifts it with undefined, if it is in the state `expected` now; undefined: if there is none.
   * Durable when it resolves; no write is accepted after that. @returns false when another command has changed it
   */
  setFence(fence: Fence | undefined, expected: FenceState | undefined): Promise<boolean>;
  /** The rows behind the fence. `waiting`: changes that functions have not processed. */
  rows(): Promise<{ readonly items: MovedRows; readonly waiting: number; close(): Promise<void> }>;
}

export interface MoveDestination {
  /** The place as the fence names it. */
  readonly name: string;
  readonly items: ItemStore;
  /** Kinds that have no effect there: a cluster with such objects is not moved. Absent: there are none. */
  readonly unserved?: { readonly resources: readonly string[]; readonly why: string };
  /** Everything of the cluster that is no row: keys and tokens, the expiry of tables. Can be repeated. */
  complete(): Promise<void>;
}

export interface MoveOptions {
  readonly source: MoveSource;
  readonly destination: MoveDestination;
  /** Id of a move that begins now. */
  readonly moveId: string;
  readonly nowMs: () => number;
  /** Where the destination is served. Absent: clients are not yet informed. */
  readonly address?: ClusterAddress;
  /** After each durable step. */
  readonly onStep?: (step: string) => void;
}

export interface Moved {
  readonly sums: RowSums | undefined;
  readonly phase: ArrivalPhase;
}

/** @throws MoveError */
export async function moveCluster(options: MoveOptions): Promise<Moved> {
  const { source, destination, nowMs, address, onStep = () => {} } = options;
  const found = await source.fence();
  requireSameMove(found, destination.name);
  const moveId = found?.moveId ?? options.moveId;
  let arrival = await arrivalAt(destination);
  await requireFree(destination, arrival, moveId);
  let fence: Fence = found ?? { moveId, to: destination.name, sinceMs: nowMs(), isReady: false };
  if (found === undefined) {
    await changeFence(source, fence, undefined);
    onStep('fenced');
  }
  if (arrival === undefined) {
    await changeArrival(destination, undefined, { moveId, phase: 'copying' });
    arrival = { moveId, phase: 'copying' };
    onStep('copying');
  }
  let sums: RowSums | undefined;
  if (arrival.phase === 'copying') {
    sums = await copied(source, destination, nowMs, onStep);
    await destination.complete();
    onStep('completed');
    const ready = { ...fence, isReady: true };
    await changeFence(source, ready, fence);
    fence = ready;
    onStep('ready at the source');
    await changeArrival(destination, 'copying', { moveId, phase: 'ready' });
    arrival = { moveId, phase: 'ready' };
    onStep('ready');
  }
  if (address !== undefined) {
    await changeFence(source, { ...fence, isReady: true, address }, fence);
    onStep('announced');
  }
  return { sums, phase: arrival.phase };
}

/** Lifts the fence, unless the destination was opened. @throws MoveError */
export async function abandonMove(source: MoveSource, destination: MoveDestination | undefined): Promise<void> {
  const fence = await source.fence();
  if (fence === undefined) throw new MoveError('it is not being moved');
  if (destination !== undefined && destination.name !== fence.to) {
    throw new MoveError(`it is being moved to ${fence.to}, not to ${destination.name}`);
  }
  const arrival = destination && (await arrivalAt(destination));
  if (destination === undefined || arrival?.moveId !== fence.moveId) {
    // It may be ready by now: the fence decides, which is lifted only while it is not.
    if (!fence.isReady) return changeFence(source, undefined, fence);
    throw new MoveError(`${fence.to} may have been opened, and cannot be asked: the fence stays`);
  }
  if (arrival.phase === 'open') throw new MoveError(`${fence.to} was opened: it is the cluster now`);
  if (arrival.phase !== 'abandoned') {
    await changeArrival(destination, arrival.phase, { ...arrival, phase: 'abandoned' });
  }
  await changeFence(source, undefined, fence);
}

/** @throws MoveError for a cluster that is moved elsewhere */
export function requireSameMove(fence: Fence | undefined, to: string): void {
  if (fence === undefined || fence.to === to) return;
  throw new MoveError(`it is being moved to ${fence.to} already: finish that move, or end it with --abandon`);
}

/**
 * If two commands run at once, one changes the fence. The other ends here, so a destination becomes complete only by
 * the move that the source is fenced for.
 *
 * @throws MoveError
 */
export async function changeFence(
  source: Pick<MoveSource, 'setFence'>,
  fence: Fence | undefined,
  expected: FenceState | undefined,
): Promise<void> {
  if (await source.setFence(fence, expected)) return;
  throw new MoveError('another command has changed the move of this cluster: look at both, and run one of them again');
}

async function copied(
  source: MoveSource,
  destination: MoveDestination,
  nowMs: () => number,
  onStep: (step: string) => void,
): Promise<RowSums> {
  const rows = await source.rows();
  try {
    if (rows.waiting > 0) {
      throw new MoveError(
        `${rows.waiting} changes are not processed: run nodekeeper move --abandon, start the cluster, and try again`,
      );
    }
    await requireServed(rows.items, destination);
    await copyRows(rows.items, destination.items);
    onStep('copied');
    const expiryAfterSeconds = nowMs() / 1_000 + EXPIRY_SECONDS;
    const [expected, arrived] = await Promise.all([
      rowSums(rows.items, expiryAfterSeconds),
      rowSums(destination.items, expiryAfterSeconds),
    ]);
    const difference = differenceOf(expected, arrived);
    if (difference !== undefined) throw new MoveError(`the copy differs: ${difference}. Run the command again`);
    onStep('compared');
    return expected;
  } finally {
    await rows.close();
  }
}

/** @throws MoveError */
async function requireServed(rows: MovedRows, { name, unserved }: MoveDestination): Promise<void> {
  for (const resource of unserved?.resources ?? []) {
    const { items } = await rows.query({
      table: 'objects',
      pk: objectPartition(resource, 0),
      consistent: true,
      limit: 1,
    });
    const [first] = items;
    if (first === undefined) continue;
    throw new MoveError(
      `there are ${resource}, such as ${String(first['sk'])}, and ${unserved?.why}: run nodekeeper move --abandon, ` +
        `delete them, delete what was made at ${name}, and try again`,
    );
  }
}

const arrivalAt = async ({ items }: MoveDestination): Promise<Arrival | undefined> =>
  arrivalOf(await items.get(ARRIVAL_KEY, { consistent: true }));

async function requireFree(destination: MoveDestination, arrival: Arrival | undefined, moveId: string): Promise<void> {
  const { name, items } = destination;
  if (arrival === undefined) {
    if (!(await isEmpty(items))) throw new MoveError(`${name} is not empty: name another destination`);
    return;
  }
  if (arrival.moveId !== moveId) throw new MoveError(`${name} is the destination of another move`);
  if (arrival.phase === 'abandoned') {
    throw new MoveError(`the move to ${name} was abandoned: delete it, or name another destination`);
  }
}

/** @throws MoveError if somebody else changed it */
async function changeArrival(
  { name, items }: MoveDestination,
  from: ArrivalPhase | undefined,
  { moveId, phase }: Arrival,
): Promise<void> {
  const outcome = await items.write({
    kind: 'put',
    key: ARRIVAL_KEY,
    item: { moveId, phase },
    when:
      from === undefined
        ? { kind: 'itemAbsent' }
        : {
            kind: 'all',
            of: [
              { kind: 'compare', attribute: 'moveId', op: '=', value: moveId },
              // A repeated request finds its own success.
              {
                kind: 'any',
                of: [from, phase].map((value) => ({ kind: 'compare', attribute: 'phase', op: '=', value }) as const),
              },
            ],
          },
  });
  if (outcome.kind === 'written') return;
  const found = arrivalOf(outcome.current);
  if (found?.moveId === moveId && found.phase === phase) return;
  throw new MoveError(`${name} was ${found?.phase ?? 'changed'} meanwhile by another command`);
}
