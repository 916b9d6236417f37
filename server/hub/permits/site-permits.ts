/**
 * Which machine of the site may run a pod: the hub permits it to one at a time. Nothing else decides, so nothing has to
 * be agreed with the cluster while the link is cut (decision 0068).
 *
 *              permitted to its machine ──┬─ release ──▶ ended: the machine reports the end to the cluster
 *                                         ├─ move ─────▶ its copy is permitted to another machine
 *                                         └─ give up ──▶ the cluster deletes it, and its controller makes another one
 *
 * Each arrow is final, and needs that no machine runs the pod: the machine says so (release), or the fence is over. The
 * fence is the time from the last permit until the pod has stopped (site-permit.ts), by the monotonic clock of this
 * process. A process that has started does not know the permits of the one before, and counts from its start.
 *
 * An arrow is effective for permits at once, and for all else when it is durable: only then a copy is permitted, an end
 * is confirmed, a deletion is sent. A process that dies before has done nothing. After that, the next one finds it.
 *
 * A file that was lost knew of moves, and their permits may still count. So a new file permits pods that were there
 * before it only after their fence.
 */

import type { KubePod } from '../../../shared/kinds/types.ts';

/** A pod, as far as permits need it. */
export interface SitePod {
  readonly uid: string;
  /** Where the cluster, or a move, has it. */
  readonly nodeName: string;
  /** Milliseconds. */
  readonly fenceMs: number;
  readonly isDeleting: boolean;
  /** The copy of the cluster has it as Succeeded or Failed. */
  readonly hasEnded: boolean;
}

/** What is moved. */
export interface MovedPod {
  readonly namespace: string;
  /** Of the original. */
  readonly name: string;
  readonly copy: KubePod;
  /** When and why, for people. Epoch milliseconds by the clock of the hub. */
  readonly atMs: number;
  readonly why: string;
}

/** A pod that was moved without the cluster. */
export interface Move {
  /** The original first, then copies that were moved on. */
  readonly from: readonly string[];
  readonly uid: string;
  readonly nodeName: string;
  readonly fenceMs: number;
  readonly moved: MovedPod;
  /** `withdrawn`: the cluster has decided otherwise. `merged`: the cluster has the copy. */
  readonly state: 'waiting' | 'withdrawn' | 'merged';
}

/** What outlives the process. */
export interface PermitRecords {
  /** By the uid of the original. */
  readonly moves: ReadonlyMap<string, Move>;
  /** Uids, and claimedKey of those that were not known. */
  readonly ended: ReadonlySet<string>;
  readonly givenUp: ReadonlySet<string>;
  /** Pods that were there before the file, and may run by permits of a lost one. Undefined: not known yet. */
  readonly doubtful: ReadonlySet<string> | undefined;
}

export type PermitChange =
  | { readonly kind: 'move'; readonly origin: string; readonly move: Move }
  | { readonly kind: 'ended'; readonly uid: string }
  | { readonly kind: 'givenUp'; readonly uid: string }
  | { readonly kind: 'doubtful'; readonly uids: readonly string[] }
  /** What these were recorded for no longer exists. */
  | {
      readonly kind: 'forget';
      readonly ended: readonly string[];
      readonly givenUp: readonly string[];
      readonly origins: readonly string[];
    };

export interface SitePermitsOptions {
  readonly records: PermitRecords;
  /** Since any moment of this process; a suspend may stop it. Milliseconds. */
  readonly monotonicMs: () => number;
  /** Resolves when the change is durable. Rejects when that is unknown. */
  readonly save: (change: PermitChange) => Promise<void>;
}

/** A machine that has not asked for this time is silent. Milliseconds. */
export const SILENT_MS = 40_000;

/** In `ended`: this machine has released a pod that the hub did not know. */
const claimedKey = ({ uid, nodeName }: Pick<SitePod, 'uid' | 'nodeName'>): string => `${uid} ${nodeName}`;

export class SitePermits {
  readonly #options: SitePermitsOptions;
  readonly #startedAtMs: number;
  readonly #moves = new Map<string, Move>();
  /** Keys of `#moves`: by the uid of the copy, and by the uids in `from`. */
  readonly #originOfCopy = new Map<string, string>();
  readonly #originOfMoved = new Map<string, string>();
  readonly #ended: Set<string>;
  readonly #givenUp: Set<string>;
  #doubtful: Set<string> | undefined;
  /** Durable. */
  readonly #effective = new Set<string>();
  /** By uid: changes that may not be durable. */
  readonly #pending = new Map<string, PermitChange>();
  /** By uid: when it was last permitted, or seen first. A machine has its time for the first permit. */
  readonly #permittedAtMs = new Map<string, number>();
  /** By machine: when it last asked. */
  readonly #askedAtMs = new Map<string, number>();
  /** By machine: a moment after which nothing ran any more that ran before it, because it had no power. */
  readonly #withoutPowerMs = new Map<string, number>();
  /** Copies that their machine says to have stopped. */
  readonly #stopped = new Set<string>();

  constructor(options: SitePermitsOptions) {
    const { records } = options;
    this.#options = options;
    this.#startedAtMs = options.monotonicMs();
    for (const [origin, move] of records.moves) this.#setMove(origin, move);
    this.#ended = new Set(records.ended);
    this.#givenUp = new Set(records.givenUp);
    this.#doubtful = records.doubtful && new Set(records.doubtful);
    for (const { uid } of this.#moves.values()) this.#effective.add(uid);
    for (const uid of [...this.#ended, ...this.#givenUp]) this.#effective.add(uid);
  }

  /**
   * A complete copy of the cluster was read. The first one after the file was made has the pods that may run
   * by permits of a lost one. The next process begins to wait anew, so those that have waited are removed.
   */
  async begin(pods: readonly Pick<SitePod, 'uid' | 'fenceMs'>[]): Promise<void> {
    const doubtful = this.#doubtful;
    const uids = pods
      .filter(({ uid, fenceMs }) => doubtful === undefined || (doubtful.has(uid) && this.#isDoubtful(uid, fenceMs)))
      .map(({ uid }) => uid);
    if (doubtful !== undefined && doubtful.size === uids.length) return;
    this.#doubtful = new Set(uids);
    await this.#effect('', { kind: 'doubtful', uids });
  }

  /** A machine asks. @returns the uids of those pods that it may run from before it asked */
  ask(nodeName: string, pods: readonly SitePod[]): readonly string[] {
    const nowMs = this.#options.monotonicMs();
    this.#askedAtMs.set(nodeName, nowMs);
    const permitted = this.#candidates(pods).filter((pod) => this.#holderOf(pod) === nodeName);
    for (const { uid } of permitted) this.#permittedAtMs.set(uid, nowMs);
    return permitted.map(({ uid }) => uid);
  }

  /**
   * The machine does not run the pod and never will. Resolves when nothing else will begin to. False: it is not the
   * machine's to report. `claimedBy`: its machine is not known yet, so it counts for a pod of this one alone.
   */
  async release({ uid, fenceMs }: Pick<SitePod, 'uid' | 'fenceMs'>, claimedBy?: string): Promise<boolean> {
    if (this.#isMoved(uid) || this.#isDoubtful(uid, fenceMs)) return false;
    const key = claimedBy === undefined ? uid : claimedKey({ uid, nodeName: claimedBy });
    this.#ended.add(key);
    await this.#effect(key, { kind: 'ended', uid: key });
    return true;
  }

  /** Copies that the machine must stop for good, and say so. */
  withdrawn(nodeName: string): readonly string[] {
    return [...this.#moves.values()]
      .filter((move) => move.state === 'withdrawn' && move.nodeName === nodeName && !this.#stopped.has(move.uid))
      .map(({ uid }) => uid);
  }

  /** The machine knows that the copy was withdrawn, and does not run it. */
  hasStopped(nodeName: string, uid: string): void {
    const move = this.#moveTo(uid)?.[1];
    if (move?.state === 'withdrawn' && move.nodeName === nodeName) this.#stopped.add(uid);
  }

  askedAtMs(nodeName: string): number | undefined {
    return this.#askedAtMs.get(nodeName);
  }

  isSilent(nodeName: string): boolean {
    const sinceMs = Math.max(this.#startedAtMs, this.#askedAtMs.get(nodeName) ?? 0);
    return this.#options.monotonicMs() - sinceMs >= SILENT_MS;
  }

  /** Pods that no machine runs any more, although their machine did not say so: it is silent. */
  lost(pods: readonly SitePod[]): readonly SitePod[] {
    return this.#candidates(pods).filter((pod) => this.#isLost(pod));
  }

  #isLost(pod: SitePod): boolean {
    const holder = this.#holderOf(pod);
    return holder !== undefined && this.isSilent(holder) && this.isFenced(pod);
  }

  /** Silent machines that may run some of these pods: the fence of those is not over. */
  silentHolders(pods: readonly SitePod[]): ReadonlySet<string> {
    const holders = this.#candidates(pods).flatMap((pod) => (this.isFenced(pod) ? [] : [this.#holderOf(pod) ?? '']));
    return new Set(holders.filter((nodeName) => nodeName !== '' && this.isSilent(nodeName)));
  }

  /**
   * The machine had no power at some moment after this one. It counts for pods that were permitted before, and not if
   * the machine has asked since: it may run again.
   */
  lostPower(nodeName: string, afterMs: number): void {
    if ((this.#askedAtMs.get(nodeName) ?? 0) < afterMs) this.#withoutPowerMs.set(nodeName, afterMs);
  }

  isFenced({ uid, nodeName, fenceMs }: Pick<SitePod, 'uid' | 'nodeName' | 'fenceMs'>): boolean {
    if (this.#stopped.has(uid)) return true;
    if (this.#hadNoPower(uid, nodeName)) return true;
    const sinceMs = Math.max(this.#startedAtMs, this.#permittedAtMs.get(uid) ?? 0);
    return this.#options.monotonicMs() - sinceMs >= fenceMs;
  }

  /** After it was last permitted. */
  #hadNoPower(uid: string, nodeName: string): boolean {
    return (this.#permittedAtMs.get(uid) ?? 0) < (this.#withoutPowerMs.get(nodeName) ?? 0);
  }

  /** Of a pod in `lost`, for people. */
  whyLost({ uid, nodeName }: Pick<SitePod, 'uid' | 'nodeName'>): string {
    const what = this.#hadNoPower(uid, nodeName) ? 'was switched off' : 'its permits are over';
    return `node ${nodeName} does not answer the hub, and ${what}`;
  }

  /** Of a pod in `lost`. Resolves when the copy may be permitted. */
  async move(pod: SitePod, copy: Pick<Move, 'uid' | 'nodeName' | 'moved'>): Promise<Move | undefined> {
    if (pod.isDeleting || !this.#isLost(pod)) return undefined;
    const [origin, former] = this.#moveTo(pod.uid) ?? [pod.uid, undefined];
    const isOn = former !== undefined && former.state === 'waiting';
    const from = isOn ? [...former.from, pod.uid] : [pod.uid];
    const move: Move = { ...copy, from, fenceMs: pod.fenceMs, state: 'waiting' };
    const key = isOn ? origin : pod.uid;
    this.#setMove(key, move);
    await this.#effect(copy.uid, { kind: 'move', origin: key, move });
    return move;
  }

  /**
   * Of a pod in `lost`, with a link. Resolves with true when the cluster may be asked to delete it. False: it is a copy
   * that the cluster does not have, or it is lost no longer.
   */
  async giveUp(pod: SitePod): Promise<boolean> {
    if (this.#moveTo(pod.uid)?.[1].state === 'waiting' || !this.#isLost(pod)) return false;
    this.#givenUp.add(pod.uid);
    await this.#effect(pod.uid, { kind: 'givenUp', uid: pod.uid });
    return true;
  }

  /** The move that made this copy. */
  moveTo(uid: string): Move | undefined {
    return this.#moveTo(uid)?.[1];
  }

  /** Durable moves, by the uid of the original. */
  moves(): readonly (readonly [string, Move])[] {
    return [...this.#moves].filter(([, { uid }]) => this.#effective.has(uid));
  }

  /**
   * Pods that the cluster is to delete: no machine runs them, and none ever will. One that has ended is kept for those
   * who read it, unless it was deleted, and its machine does not confirm that.
   */
  deletable(pods: readonly SitePod[]): readonly (SitePod & { readonly why: string })[] {
    return pods.flatMap((pod) => {
      const why = pod.hasEnded && !pod.isDeleting ? undefined : this.#whyDeletable(pod);
      return why === undefined ? [] : [{ ...pod, why }];
    });
  }

  #whyDeletable(pod: SitePod): string | undefined {
    const { uid, nodeName } = pod;
    if (this.#pending.has(uid)) return undefined;
    if (this.#givenUp.has(uid)) return this.whyLost(pod);
    const ended = this.#endedKey(pod);
    if (ended !== undefined && this.#pending.has(ended)) return undefined;
    // A release may arrive after the machine was restarted, and has begun to run the pod again.
    if (ended !== undefined) return this.isFenced(pod) ? `node ${nodeName} has released it` : undefined;
    // A merge that was late may have been granted after another one was refused: then the copy is there.
    const move = this.#moves.get(this.#originOfMoved.get(uid) ?? this.#originOfCopy.get(uid) ?? '');
    if (move?.state !== 'withdrawn' || this.#pending.has(move.uid) || !this.isFenced(move)) return undefined;
    return `its copy on node ${move.nodeName} was withdrawn, and has stopped`;
  }

  /** What the cluster has decided about a move. */
  async settle(origin: string, uid: string, state: 'merged' | 'withdrawn'): Promise<void> {
    const move = this.#moves.get(origin);
    if (move === undefined || move.uid !== uid || move.state !== 'waiting') return;
    const settled: Move = { ...move, state };
    // A withdrawal is effective at once. A merge changes no permit.
    this.#setMove(origin, settled);
    await this.#effect(uid, { kind: 'move', origin, move: settled });
  }

  /**
   * Forgets what is about pods that a complete copy of the cluster does not have: a uid never returns, so nothing could
   * be permitted for it. Whoever has read an older copy must not ask afterwards. A copy that was withdrawn is
   * remembered until it has stopped.
   */
  async forget(present: ReadonlySet<string>): Promise<void> {
    const isGone = (key: string): boolean => {
      const [uid = ''] = key.split(' ', 1);
      return !present.has(uid) && !this.#pending.has(key) && !this.#moveTo(uid);
    };
    const ended = [...this.#ended].filter(isGone);
    const givenUp = [...this.#givenUp].filter(isGone);
    const origins = [...this.#moves].flatMap(([origin, move]) => {
      const isOver = move.state === 'merged' || (move.state === 'withdrawn' && this.isFenced(move));
      const isPresent =
        move.from.some((uid) => present.has(uid)) || (move.state === 'withdrawn' && present.has(move.uid));
      return isOver && !this.#pending.has(move.uid) && !isPresent ? [origin] : [];
    });
    for (const uid of [...this.#permittedAtMs.keys()]) {
      if (!present.has(uid) && this.#moveTo(uid) === undefined) this.#permittedAtMs.delete(uid);
    }
    if (ended.length + givenUp.length + origins.length === 0) return;
    await this.#options.save({ kind: 'forget', ended, givenUp, origins });
    for (const uid of ended) this.#ended.delete(uid);
    for (const uid of givenUp) this.#givenUp.delete(uid);
    for (const origin of origins) this.#deleteMove(origin);
  }

  #candidates(pods: readonly SitePod[]): readonly SitePod[] {
    const known = new Set(pods.map(({ uid }) => uid));
    const copies = [...this.#moves.values()].filter((move) => move.state === 'waiting' && !known.has(move.uid));
    const nowMs = this.#options.monotonicMs();
    for (const { uid } of [...pods, ...copies]) {
      if (!this.#permittedAtMs.has(uid)) this.#permittedAtMs.set(uid, nowMs);
    }
    return [...pods, ...copies.map((move): SitePod => ({ ...move, isDeleting: false, hasEnded: false }))];
  }

  /** The one machine that may run it. */
  #holderOf(pod: SitePod): string | undefined {
    const { uid } = pod;
    if (pod.hasEnded || this.#endedKey(pod) !== undefined) return undefined;
    if (this.#givenUp.has(uid) || this.#isMoved(uid)) return undefined;
    const move = this.#moveTo(uid)?.[1];
    if (move === undefined) return this.#isDoubtful(uid, pod.fenceMs) ? undefined : pod.nodeName;
    return move.state !== 'withdrawn' && this.#effective.has(uid) ? move.nodeName : undefined;
  }

  /** What was recorded when its machine released it. */
  #endedKey(pod: Pick<SitePod, 'uid' | 'nodeName'>): string | undefined {
    return [pod.uid, claimedKey(pod)].find((key) => this.#ended.has(key));
  }

  #isMoved(uid: string): boolean {
    return this.#originOfMoved.has(uid);
  }

  #moveTo(uid: string): readonly [string, Move] | undefined {
    const origin = this.#originOfCopy.get(uid);
    return origin === undefined ? undefined : [origin, this.#moves.get(origin)!];
  }

  #setMove(origin: string, move: Move): void {
    this.#removeFromIndexes(origin);
    this.#moves.set(origin, move);
    this.#originOfCopy.set(move.uid, origin);
    for (const uid of move.from) this.#originOfMoved.set(uid, origin);
  }

  #deleteMove(origin: string): void {
    this.#removeFromIndexes(origin);
    this.#moves.delete(origin);
  }

  #removeFromIndexes(origin: string): void {
    const move = this.#moves.get(origin);
    if (move === undefined) return;
    this.#originOfCopy.delete(move.uid);
    for (const uid of move.from) this.#originOfMoved.delete(uid);
  }

  #isDoubtful(uid: string, fenceMs: number): boolean {
    if (this.#doubtful === undefined) return true;
    return this.#doubtful.has(uid) && this.#options.monotonicMs() - this.#startedAtMs < fenceMs;
  }

  /** Writes again what may not be durable. Rejects as `save` does. */
  async retry(): Promise<void> {
    for (const [uid, change] of [...this.#pending]) await this.#effect(uid, change);
  }

  /** A change with an unknown outcome withdraws permits, and has no other effect before it is written again. */
  async #effect(uid: string, change: PermitChange): Promise<void> {
    this.#pending.set(uid, change);
    await this.#options.save(change);
    if (this.#pending.get(uid) === change) this.#pending.delete(uid);
    this.#effective.add(uid);
  }
}
