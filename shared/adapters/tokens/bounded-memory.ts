export interface BoundedMemory<T> {
  find(key: string): T | undefined;
  keep(key: string, value: T): void;
  forget(key: string): void;
}

/** Forgets what was kept longest ago. What is used is kept again by its own expiry, so order of use is not followed. */
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
 * What was looked up, and what is not there kept apart from what is: anybody can make up names of nothing, and they must not
 * push out the others.
 *
 * @param isThere of a value
 * @param entriesMax of each kind
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
