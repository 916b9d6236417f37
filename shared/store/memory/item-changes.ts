/** Changes of one table in order, as records of its stream. */
import type { StoreChange } from '../writes/store-change.ts';

export interface ItemChange extends StoreChange {
  /** Counts from 1 within the table. */
  readonly sequence: number;
}

export class ItemChanges {
  #last = 0;
  readonly #changes: ItemChange[] = [];

  add(change: StoreChange): void {
    this.#last += 1;
    this.#changes.push({ sequence: this.#last, ...change });
  }

  /** Changes after a sequence number. */
  after(sequence: number): readonly ItemChange[] {
    return this.#changes.slice(this.#countThrough(sequence));
  }

  /** Drops changes up to and including a sequence number. */
  drop(through: number): void {
    this.#changes.splice(0, this.#countThrough(through));
  }

  /** How many of the kept changes have this sequence number or a lower one. */
  #countThrough(sequence: number): number {
    const first = this.#changes[0]?.sequence ?? 1;
    return Math.max(0, sequence + 1 - first);
  }
}
