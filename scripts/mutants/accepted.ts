/**
 * Mutants that no test has to detect, each with the reason: they change no behaviour. A mutant is known by its file, the
 * function around it and its change; an entry that matches no mutant any more fails accepted.test.ts and leaves the list.
 */
import type { Mutant } from './mutators.ts';

export interface Accepted {
  /** The end of a path, so that moving a folder leaves the entry valid. */
  readonly file: string;
  readonly within: string;
  readonly change: string;
  /** Why nobody can see a difference. */
  readonly reason: string;
}

export const ACCEPTED: readonly Accepted[] = [];

export function accepts(entry: Accepted, mutant: Mutant): boolean {
  const sameFile = mutant.file === entry.file || mutant.file.endsWith(`/${entry.file}`);
  return sameFile && mutant.within === entry.within && mutant.change === entry.change;
}
