/**
 * Changes that may let waiting pods be scheduled. A change that can help no other pod is kept for its own pod alone,
 * and a pod looks at each change once. So the creation of 10,000 pods that fit nowhere, and each pass over them, costs
 * what their number costs, not its square.
 */
import { concernsOthers, type WorldChange } from '../../shared/scheduling/queue.rule.ts';

/** Changes for all pods. A pod that was tried before them is tried again. */
const COMMON_MAX = 4_096;
/** Changes of one waiting pod itself, in the same way. */
const OWN_MAX = 8;

interface Numbered {
  readonly number: number;
  readonly change: WorldChange;
}

/** The newest changes of a kind. */
class Newest {
  #changes: Numbered[] = [];
  readonly #max: number;
  /** All changes from this number on are known. */
  #from: number;

  constructor(max: number, from: number) {
    this.#max = max;
    this.#from = from;
  }

  add(changed: Numbered): void {
    this.#changes.push(changed);
    if (this.#changes.length <= 2 * this.#max) return;
    this.#changes = this.#changes.slice(-this.#max);
    this.#from = this.#changes[0]!.number;
  }

  /** undefined: not all of them are known. */
  since(seen: number): readonly WorldChange[] | undefined {
    if (seen < this.#from) return undefined;
    const first = this.#changes.findLastIndex(({ number }) => number < seen) + 1;
    return this.#changes.slice(first).map(({ change }) => change);
  }
}

interface WaitingPod {
  readonly own: Newest;
  /** No change before this number helps. */
  noHelpBefore: number;
}

export class ChangeHistory {
  #changeCount = 0;
  #common = new Newest(COMMON_MAX, 0);
  #waiting = new Map<string, WaitingPod>();

  /** Number of changes since the process began. */
  get changeCount(): number {
    return this.#changeCount;
  }

  add(change: WorldChange): void {
    const changed = { number: this.#changeCount, change };
    this.#changeCount += 1;
    if (concernsOthers(change)) this.#common.add(changed);
    if (change.kind !== 'pod') return;
    for (const key of new Set([change.before?.key, change.after?.key])) {
      if (key !== undefined) this.#waiting.get(key)?.own.add(changed);
    }
  }

  startWaiting(key: string): void {
    if (!this.#waiting.has(key))
      this.#waiting.set(key, { own: new Newest(OWN_MAX, this.#changeCount), noHelpBefore: 0 });
  }

  stopWaiting(key: string): void {
    this.#waiting.delete(key);
  }

  /** Something may have changed that is not known. `waiting`: keys of the pods that wait now. */
  forget(waiting: Iterable<string>): void {
    this.#changeCount += 1;
    this.#common = new Newest(COMMON_MAX, this.#changeCount);
    this.#waiting = new Map();
    for (const key of waiting) this.startWaiting(key);
  }

  /**
   * Whether a change may help a pod that was tried when `seen` changes were known. A change is looked at once: after a
   * "no" only later ones are, until the pod is tried again and `seen` is later. What changes the answer is a change
   * of the pod itself, or of the labels of a namespace. The latter starts no attempt, as upstream.
   */
  mayHelp(key: string, seen: number, helps: (change: WorldChange) => boolean): boolean {
    const pod = this.#waiting.get(key);
    if (pod === undefined) return true;
    const from = Math.max(seen, pod.noHelpBefore);
    const [common, own] = [this.#common.since(from), pod.own.since(from)];
    if (common === undefined || own === undefined || common.some(helps) || own.some(helps)) return true;
    pod.noHelpBefore = this.#changeCount;
    return false;
  }
}
