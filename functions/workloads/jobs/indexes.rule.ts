/**
 * Completion indexes of an Indexed Job. Source: pkg/controller/job/indexed_job_utils.go.
 *
 * They stay intervals: a status may name more of them than memory holds.
 */

/** Annotation and label of a pod: its index. */
export const INDEX = 'batch.kubernetes.io/job-completion-index';

/** First and last of each interval, in ascending order; neither overlapping nor adjacent. */
export type Indexes = readonly (readonly [number, number])[];

/** Undefined: the pod has no usable index. */
export function indexOf(annotations: Readonly<Record<string, string>> | undefined): number | undefined {
  const text = annotations?.[INDEX];
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** Of a text such as `0,2-4`. A part of another form has none; indexes from `completions` on do not count. */
export function parseIndexes(text: string | undefined, completions: number): Indexes {
  const intervals = (text ?? '').split(',').flatMap((part) => {
    const match = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part);
    if (match === null) return [];
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? first), completions - 1);
    return first <= last ? [[first, last] as const] : [];
  });
  return merged(intervals);
}

/** @param intervals in any order */
function merged(intervals: Indexes): Indexes {
  const found: [number, number][] = [];
  for (const [first, last] of intervals.toSorted(([one], [other]) => one - other)) {
    const before = found.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else found.push([first, last]);
  }
  return found;
}

export const withIndexes = (indexes: Indexes, more: readonly number[]): Indexes =>
  more.length === 0 ? indexes : merged([...indexes, ...more.map((index) => [index, index] as const)]);

export const countOf = (indexes: Indexes): number => indexes.reduce((sum, [first, last]) => sum + last - first + 1, 0);

export function hasIndex(indexes: Indexes, index: number): boolean {
  let [from, to] = [0, indexes.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (indexes[middle]![1] < index) from = middle + 1;
    else to = middle;
  }
  return from < indexes.length && indexes[from]![0] <= index;
}

/** How many indexes both have. */
export function countShared(left: Indexes, right: Indexes): number {
  let count = 0;
  for (let one = 0, other = 0; one < left.length && other < right.length; ) {
    const [[first, last], [from, to]] = [left[one]!, right[other]!];
    count += Math.max(0, Math.min(last, to) - Math.max(first, from) + 1);
    if (last < to) one += 1;
    else other += 1;
  }
  return count;
}

/** Two neighbours are written `1,2`, three and more `1-3`. */
export function formatIndexes(indexes: Indexes): string {
  return indexes
    .map(([first, last]) => (first === last ? `${first}` : `${first}${last === first + 1 ? ',' : '-'}${last}`))
    .join(',');
}

/** The lowest `count` indexes that are in neither. */
export function lowestFree(settled: readonly Indexes[], count: number, completions: number): readonly number[] {
  const free: number[] = [];
  let next = 0;
  for (const [first, last] of [...merged(settled.flat()), [completions, completions] as const]) {
    for (; next < Math.min(first, completions) && free.length < count; next += 1) free.push(next);
    if (free.length >= count) break;
    next = last + 1;
  }
  return free;
}
