/** Names in scenario files: a name, or a glob over whole names with `*`, `?`, `[abc]`, `[0-4]` and `[!a]`. */
const LITERAL = /[[.+^${}()|\\\]/-]/g;

export const isGlob = (name: string): boolean => /[*?[]/.test(name);

/** A matcher of whole names. A bracket without its end is itself. */
export function matcherOf(glob: string): (name: string) => boolean {
  if (!isGlob(glob)) return (name) => name === glob;
  let source = '';
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at]!;
    const end = char === '[' ? glob.indexOf(']', at + 2) : -1;
    if (char === '*') source += '.*';
    else if (char === '?') source += '.';
    else if (end > 0) {
      const inside = glob.slice(at + 1, end).replace(/[\\\]^]/g, '\\$&');
      source += inside.startsWith('!') ? `[^${inside.slice(1)}]` : `[${inside}]`;
      at = end;
    } else source += char.replace(LITERAL, '\\$&');
  }
  const pattern = new RegExp(`^${source}$`, 's');
  return (name) => pattern.test(name);
}

/** The names that any of the globs picks, in the order of the names. */
export function pickNames(globs: readonly string[], names: readonly string[]): string[] {
  const matchers = globs.map(matcherOf);
  return names.filter((name) => matchers.some((matches) => matches(name)));
}
