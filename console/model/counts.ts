/** Counts in sentences. */

/** "1 node", "3 nodes". */
export const countOf = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** "a, b and 3 more". */
export function someOf(names: readonly string[], shownMax: number): string {
  const rest = names.length - shownMax;
  if (rest > 0) return `${names.slice(0, shownMax).join(', ')} and ${rest} more`;
  return names.join(', ').replace(/, ([^,]+)$/, ' and $1');
}
