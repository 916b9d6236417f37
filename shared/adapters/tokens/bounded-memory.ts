export interface BoundedMemory<T> {
  find(key: string): T | undefined;
  keep(key: string, value: T): void;
  forget(key: string): void;
}

/**
 * Drops the entry that was added first. Entries that are used are added again when they expire, so use does not count.
 */
export function boundedMemory<T>(entriesMax: number): BoundedMemory<T> {
  const entries = new Map<string, T>();
  return {
    find: (key) => entries.get(key),
    keep(key, value) {
      entries.delete(key);
      if (entries.size >= entriesMax) {
        const [oldest] = entries.keys();
        if (oldest !== undefined) entries.delete(oldest);
      }
      entries.set(key, value);
    },
    forget: (key) => void entries.delete(key),
  };
}

/**
 * Caches lookups. Entries that do not exist are kept separately, because a client can invent names, which must not push
 * out existing entries.
 *
 * @param isThere whether a value is of an existing entry
 * @param entriesMax maximum number of each kind
 */
export function lookupMemory<T>(
  entriesMax: number,
  isThere: (value: T) => boolean,
): Pick<BoundedMemory<T>, 'find' | 'keep'> {
  const there = boundedMemory<T>(entriesMax);
  const absent = boundedMemory<T>(entriesMax);
  return {
    find: (key) => there.find(key) ?? absent.find(key),
    keep(key, value) {
      const [kept, other] = isThere(value) ? [there, absent] : [absent, there];
      kept.keep(key, value);
      other.forget(key);
    },
  };
}
