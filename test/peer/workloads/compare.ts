/** Compares two snapshots, field by field. Pure. */
import { KNOWN_DIFFERENCES } from './known-differences.ts';
import type { Snapshot } from './snapshot.ts';

export interface Difference {
  /** `Kind/name`. */
  readonly object: string;
  /** Fields joined by dots; '' when one side does not have the object. */
  readonly path: string;
  /** JSON; undefined when absent. */
  readonly upstream: string | undefined;
  readonly ours: string | undefined;
  /** Why it is no fault; undefined when nothing explains it. */
  readonly reason: string | undefined;
}

export function compareSnapshots(upstream: Snapshot, ours: Snapshot): readonly Difference[] {
  const differences: Difference[] = [];
  for (const object of [...new Set([...Object.keys(upstream), ...Object.keys(ours)])].toSorted()) {
    const [left, right] = [fieldsOf(upstream[object]), fieldsOf(ours[object])];
    if (upstream[object] === undefined || ours[object] === undefined) {
      const there = (value: unknown): string | undefined => (value === undefined ? undefined : 'exists');
      differences.push(explained(object, '', there(upstream[object]), there(ours[object])));
      continue;
    }
    for (const path of [...new Set([...left.keys(), ...right.keys()])].toSorted()) {
      if (left.get(path) !== right.get(path)) {
        differences.push(explained(object, path, left.get(path), right.get(path)));
      }
    }
  }
  return differences;
}

export function explained(
  object: string,
  path: string,
  upstream: string | undefined,
  ours: string | undefined,
): Difference {
  const fits = (pattern: RegExp | undefined, value: string | undefined): boolean =>
    pattern === undefined || pattern.test(String(value));
  const known = KNOWN_DIFFERENCES.find(
    (one) => one.object.test(object) && one.path.test(path) && fits(one.upstream, upstream) && fits(one.ours, ours),
  );
  return { object, path, upstream, ours, reason: known?.reason };
}

/** Leaves by path. An empty object or list is a leaf, because its presence counts. */
function fieldsOf(value: unknown, path: string[] = [], into = new Map<string, string>()): Map<string, string> {
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) {
    for (const [key, item] of Object.entries(value)) fieldsOf(item, [...path, key], into);
    return into;
  }
  if (value !== undefined) into.set(path.join('.'), JSON.stringify(value));
  return into;
}

/** Differences of one cause, for a table: object kinds and paths, how often, and the reason. */
export interface DifferenceGroup {
  readonly kind: string;
  readonly path: string;
  readonly count: number;
  readonly reason: string | undefined;
  readonly example: Difference;
}

export function groupsOf(differences: readonly Difference[]): readonly DifferenceGroup[] {
  const groups = new Map<string, DifferenceGroup>();
  for (const difference of differences) {
    const kind = difference.object.slice(0, difference.object.indexOf('/'));
    const path = difference.path.replace(/\b\d+\b/g, '*');
    const key = JSON.stringify([kind, path, difference.reason]);
    const count = (groups.get(key)?.count ?? 0) + 1;
    groups.set(key, { kind, path, reason: difference.reason, example: difference, ...groups.get(key), count });
  }
  return [...groups.values()].toSorted((a, b) => Number(a.reason !== undefined) - Number(b.reason !== undefined));
}
