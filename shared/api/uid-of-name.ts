import { shortHash } from '../text.ts';

/** A uid that is computed from the name. For objects that never share a name with an earlier one. */
export function uidOfName(name: string): string {
  const digits = [0, 1, 2, 3].map((part) => shortHash(`${part}|${name}`)).join('');
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => digits.slice(from, to))
    .join('-');
}
