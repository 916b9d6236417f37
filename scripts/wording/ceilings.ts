/** Findings that a file may still hold, by its path. A file without an entry may hold none. */
export type Ceilings = Readonly<Record<string, number>>;

export interface Verdict {
  /** Files with more findings than allowed. */
  readonly raised: readonly string[];
  /** Files with fewer findings than their ceiling: it must be written down, or the words can return. */
  readonly lowered: readonly string[];
}

export function compare(ceilings: Ceilings, counts: ReadonlyMap<string, number>): Verdict {
  const raised: string[] = [];
  const lowered = Object.keys(ceilings).filter((path) => !counts.has(path));
  for (const [path, count] of counts) {
    const ceiling = ceilings[path] ?? 0;
    if (count > ceiling) raised.push(path);
    if (count < ceiling) lowered.push(path);
  }
  return { raised, lowered: lowered.sort() };
}

/**
 * The next ceilings: each is lowered to the current count and follows its file to a new path. None is raised.
 *
 * @param previousPaths the earlier path of each file that was renamed
 */
export function lower(
  ceilings: Ceilings,
  counts: ReadonlyMap<string, number>,
  previousPaths: ReadonlyMap<string, string>,
): Ceilings {
  const next: Record<string, number> = {};
  for (const [path, count] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const ceiling = ceilings[path] ?? ceilings[previousPaths.get(path) ?? ''] ?? 0;
    if (Math.min(ceiling, count) > 0) next[path] = Math.min(ceiling, count);
  }
  return next;
}
