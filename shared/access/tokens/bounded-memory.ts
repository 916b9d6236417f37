export interface BoundedMemory<T> {
  find(key: string): T | undefined;
  keep(key: string, value: T): void;
  forget(key: string): void;
}

/**
 * A map of bounded size. It drops the entry that was added first, whether it is used or not: callers add an entry in use
 * again when it expires.
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
 * Caches lookups. Failed lookups are kept separately: a client can invent names, and these must not push out existing
 * entries.
 *
 * @param exists whether the lookup found an entry
 * @param entriesMax maximum number of each kind
 */
export function lookupMemory<T>(
  entriesMax: number,
  exists: (value: T) => boolean,
): Pick<BoundedMemory<T>, 'find' | 'keep'> {
  const existing = boundedMemory<T>(entriesMax);
  const absent = boundedMemory<T>(entriesMax);
  return {
    find: (key) => existing.find(key) ?? absent.find(key),
    keep(key, value) {
      const [kept, other] = exists(value) ? [existing, absent] : [absent, existing];
      kept.keep(key, value);
      other.forget(key);
    },
  };
}
