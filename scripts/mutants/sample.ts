/** `count` of the items, each as likely as another, in the order in which they stood. */
export function sampleOf<T>(items: readonly T[], count: number, nextFraction: () => number): T[] {
  const ranked = items.map((item, index) => ({ item, index, rank: nextFraction() }));
  const kept = ranked.sort((a, b) => a.rank - b.rank).slice(0, count);
  return kept.sort((a, b) => a.index - b.index).map(({ item }) => item);
}
