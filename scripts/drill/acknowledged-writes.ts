/** What clients wrote, and what the cluster acknowledged. Each acknowledged write, or a later one, must be stored. */

/** The text that a write puts into an object, or `absent` after a deletion. */
export type Written = string | 'absent';

interface History {
  /** In the order in which they were sent. One client at a time writes an object. */
  readonly sent: Written[];
  /** Index of the last one that was acknowledged; -1: none. */
  acknowledged: number;
}

/** By path: index of the last acknowledged write. */
export type Acknowledged = ReadonlyMap<string, number>;

export class AcknowledgedWrites {
  readonly #byPath = new Map<string, History>();
  #count = 0;

  /** Number of acknowledged writes. */
  get count(): number {
    return this.#count;
  }

  /** Before a write is sent. @returns to be called when it was acknowledged */
  sent(path: string, written: Written): () => void {
    const history = this.#byPath.get(path) ?? { sent: [], acknowledged: -1 };
    this.#byPath.set(path, history);
    const index = history.sent.push(written) - 1;
    return () => {
      this.#count += 1;
      history.acknowledged = Math.max(history.acknowledged, index);
    };
  }

  /** Before the stored objects are read: what is acknowledged meanwhile may be missing in what was read. */
  acknowledged(): Acknowledged {
    return new Map([...this.#byPath].map(([path, { acknowledged }]) => [path, acknowledged]));
  }

  /**
   * Paths of objects that are older than this, or have a text that no client wrote.
   *
   * @param stored the texts that were read, by path
   */
  lost(acknowledged: Acknowledged, stored: ReadonlyMap<string, Written>): readonly string[] {
    const isLost = ([path, index]: readonly [string, number]): boolean =>
      (this.#byPath.get(path)?.sent ?? []).lastIndexOf(stored.get(path) ?? 'absent') < index;
    return [...acknowledged].filter(isLost).map(([path]) => path);
  }
}
