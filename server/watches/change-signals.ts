/** What wakes the watches of a resource: commits of this process that add to its change log. */

export interface ChangeSignals {
  /** How many commits have changed the resource. */
  count(resource: string): number;
  /** A commit that changed the resource is durable. */
  changed(resource: string): void;
  /** Resolves when the count differs from `seen`, or after the time. @returns whether it differs */
  wait(resource: string, at: { readonly seen: number; readonly milliseconds: number }): Promise<boolean>;
}

interface Resource {
  count: number;
  readonly waiting: Set<() => void>;
}

export function changeSignals(): ChangeSignals {
  const resources = new Map<string, Resource>();
  const entryOf = (name: string): Resource => {
    const known = resources.get(name);
    if (known !== undefined) return known;
    const made: Resource = { count: 0, waiting: new Set() };
    resources.set(name, made);
    return made;
  };
  return {
    count: (resource) => resources.get(resource)?.count ?? 0,
    changed(resource) {
      const entry = entryOf(resource);
      entry.count += 1;
      const woken = [...entry.waiting];
      entry.waiting.clear();
      for (const wake of woken) wake();
    },
    wait(resource, { seen, milliseconds }) {
      const entry = entryOf(resource);
      if (entry.count !== seen) return Promise.resolve(true);
      return new Promise((resolve) => {
        const end = (isChanged: boolean): void => {
          clearTimeout(timer);
          entry.waiting.delete(wake);
          resolve(isChanged);
        };
        const wake = (): void => end(true);
        const timer = setTimeout(() => end(false), milliseconds);
        entry.waiting.add(wake);
      });
    },
  };
}
