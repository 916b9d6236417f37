/**
 * The order of two versions of the agent, as Semantic Versioning 2.0.0 defines it (semver.org, clause 11), for any
 * count of numbers: `2026.11.22` has an order, too. Build metadata after `+` has none.
 */

interface ParsedVersion {
  readonly numbers: readonly number[];
  /** Empty: a release, which is newer than each of its pre-releases. */
  readonly preRelease: readonly string[];
}

const ORDERED = /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/;

/** Undefined for a text without an order, such as a commit. */
function parsed(version: string): ParsedVersion | undefined {
  const [, numbers, preRelease] = ORDERED.exec(version) ?? [];
  if (numbers === undefined) return undefined;
  return { numbers: numbers.split('.').map(Number), preRelease: preRelease?.split('.') ?? [] };
}

/** Whether `version` is older than `other`. False if one of them has no order. */
export function isOlderVersion(version: string, other: string): boolean {
  const [mine, theirs] = [parsed(version), parsed(other)];
  if (mine === undefined || theirs === undefined) return false;
  const count = Math.max(mine.numbers.length, theirs.numbers.length);
  for (let index = 0; index < count; index += 1) {
    const difference = (mine.numbers[index] ?? 0) - (theirs.numbers[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return isOlderPreRelease(mine.preRelease, theirs.preRelease);
}

function isOlderPreRelease(mine: readonly string[], theirs: readonly string[]): boolean {
  if (mine.length === 0 || theirs.length === 0) return mine.length > theirs.length;
  const count = Math.min(mine.length, theirs.length);
  for (let index = 0; index < count; index += 1) {
    const order = identifierOrder(mine[index]!, theirs[index]!);
    if (order !== 0) return order < 0;
  }
  return mine.length < theirs.length;
}

/** Numbers are older than texts. */
function identifierOrder(mine: string, theirs: string): number {
  const [isMineNumber, isTheirsNumber] = [/^\d+$/.test(mine), /^\d+$/.test(theirs)];
  if (isMineNumber && isTheirsNumber) return Number(mine) - Number(theirs);
  if (isMineNumber !== isTheirsNumber) return isMineNumber ? -1 : 1;
  return mine < theirs ? -1 : Number(mine > theirs);
}
