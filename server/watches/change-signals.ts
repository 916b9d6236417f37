/**
 * What wakes watches: commits of this process that add to the change log of their resource, and commits that may
 * withdraw access from their user.
 */
import { setImmediate as turn } from 'node:timers/promises';

/** Watches that are woken in one turn of the event loop: 2,000 of them would need 20 to 50 ms. */
const WOKEN_AT_ONCE_MAX = 200;
/**
 * From the first commit that may withdraw access until all watches are woken, once for all such commits. Milliseconds.
 */
const WAKE_ALL_MS = 1_000;

export interface ChangeSignals {
  /** How many commits have changed the resource. */
  count(resource: string): number;
  /** A commit that changed the resource is durable. */
  changed(resource: string): void;
  /** Resources that somebody waits for. */
  waitedFor(): readonly string[];
  /** How many commits may have withdrawn access. */
  withdrawals(): number;
  /** Such a commit is durable. */
  withdrawn(): void;
  /**
   * Resolves when the count differs from `seen`, at a wake-up of all, or after the time. @returns whether it was woken
   */
  wait(resource: string, at: { readonly seen: number; readonly milliseconds: number }): Promise<boolean>;
}

interface Resource {
  count: number;
  readonly waiting: Set<() => void>;
}

export function changeSignals(): ChangeSignals {
  const resources = new Map<string, Resource>();
  let withdrawals = 0;
  let isWakingAll = false;
  const entryOf = (name: string): Resource => {
    const known = resources.get(name);
    if (known !== undefined) return known;
    const made: Resource = { count: 0, waiting: new Set() };
    resources.set(name, made);
    return made;
  };
  const wake = async (woken: readonly (() => void)[]): Promise<void> => {
    for (const [index, end] of woken.entries()) {
      if (index > 0 && index % WOKEN_AT_ONCE_MAX === 0) await turn();
      end();
    }
  };
  const taken = ({ waiting }: Resource): readonly (() => void)[] => {
    const woken = [...waiting];
    waiting.clear();
    return woken;
  };
  return {
    count: (resource) => resources.get(resource)?.count ?? 0,
    changed(resource) {
      const entry = entryOf(resource);
      entry.count += 1;
      void wake(taken(entry));
    },
    waitedFor: () => [...resources].flatMap(([name, { waiting }]) => (waiting.size > 0 ? [name] : [])),
    withdrawals: () => withdrawals,
    withdrawn() {
      withdrawals += 1;
      if (isWakingAll) return;
      isWakingAll = true;
      setTimeout(() => {
        isWakingAll = false;
        void wake([...resources.values()].flatMap(taken));
      }, WAKE_ALL_MS).unref();
    },
    wait(resource, { seen, milliseconds }) {
      const entry = entryOf(resource);
      if (entry.count !== seen) return Promise.resolve(true);
      return new Promise((resolve) => {
        const end = (isWoken: boolean): void => {
          clearTimeout(timer);
          entry.waiting.delete(onWake);
          resolve(isWoken);
        };
        const onWake = (): void => end(true);
        const timer = setTimeout(() => end(false), milliseconds);
        entry.waiting.add(onWake);
      });
    },
  };
}
