/** Letters of a name in which one letter may be a slip: `tag` may be the user's own name, and no misspelt `tags`. */
const LONG_NAME_LETTERS = 8;

/**
 * The name that a misspelt one almost is: the same but for case, hyphens and underscores; a long one also but for one
 * letter that is missing, added or changed, or two that are swapped.
 */
export const nearName = (names: readonly string[], misspelt: string): string | undefined =>
  names.find((name) => isNear(plain(name), plain(misspelt)));

const plain = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '');

function isNear(name: string, other: string): boolean {
  if (name === other) return true;
  if (name.length < LONG_NAME_LETTERS) return false;
  let at = 0;
  while (name[at] === other[at]) at += 1;
  const [rest, otherRest] = [name.slice(at), other.slice(at)];
  const isSwapped = rest[0] === otherRest[1] && rest[1] === otherRest[0] && rest.slice(2) === otherRest.slice(2);
  return (
    isSwapped || rest.slice(1) === otherRest || rest === otherRest.slice(1) || rest.slice(1) === otherRest.slice(1)
  );
}
