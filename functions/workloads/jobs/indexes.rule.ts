/** Completion indexes of an Indexed Job. Source: pkg/controller/job/indexed_job_utils.go. */

/** Annotation and label of a pod: its index. */
export const INDEX = 'batch.kubernetes.io/job-completion-index';

/** Undefined: the pod has no usable index. */
export function indexOf(annotations: Readonly<Record<string, string>> | undefined): number | undefined {
  const text = annotations?.[INDEX];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Intervals of a text such as `0,2-4`. A part of another form has none; indexes from `completions` on do not count. */
export function parseIntervals(text: string | undefined, completions: number): readonly (readonly [number, number])[] {
  return (text ?? '').split(',').flatMap((part) => {
    const match = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part);
    if (match === null) return [];
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? first), completions - 1);
    return first <= last ? [[first, last] as const] : [];
  });
}

/** The indexes of such a text. */
export function parseIndexes(text: string | undefined, completions: number): ReadonlySet<number> {
  const found = new Set<number>();
  for (const [first, last] of parseIntervals(text, completions)) {
    for (let index = first; index <= last; index += 1) found.add(index);
  }
  return found;
}

/** Two neighbours are written `1,2`, three and more `1-3`. */
export function formatIndexes(indexes: Iterable<number>): string {
  const sorted = [...indexes].sort((left, right) => left - right);
  const parts: string[] = [];
  for (let begin = 0; begin < sorted.length; ) {
    let end = begin;
    while (sorted[end + 1] === sorted[end]! + 1) end += 1;
    const [first, last] = [sorted[begin]!, sorted[end]!];
    parts.push(end === begin ? `${first}` : end === begin + 1 ? `${first},${last}` : `${first}-${last}`);
    begin = end + 1;
  }
  return parts.join(',');
}

/** The lowest `count` indexes that are not in use. */
export function lowestFree(used: ReadonlySet<number>, count: number, completions: number): readonly number[] {
  const free: number[] = [];
  for (let index = 0; index < completions && free.length < count; index += 1) if (!used.has(index)) free.push(index);
  return free;
}
