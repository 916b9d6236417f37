/**
 * Names of the pods of an owner. Source: apiserver storage/names/generate.go; the suffix is a hash instead of random
 * characters. A repeated creation makes the same pods.
 */
import { textHash } from '../../../shared/text.ts';

export const NAME_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_CHARACTERS = 5;
const NAME_CHARACTERS_MAX = 63;

/** The prefix with its dash is cut to the length that is left. */
export function podNameFor(
  ownerName: string,
  seed: { readonly uid: string; readonly fence: number; readonly position: number },
): string {
  const prefix = `${ownerName}-`.slice(0, NAME_CHARACTERS_MAX - SUFFIX_CHARACTERS);
  return prefix + suffixOf(`${seed.uid}/${seed.fence}/${seed.position}`);
}

/** What stands before the suffix of a generated name. */
export const prefixOf = (podName: string): string => podName.slice(0, -SUFFIX_CHARACTERS);

/** Two rounds of a 32-bit hash: one has fewer than 27⁵ well-spread values for similar texts. */
function suffixOf(text: string): string {
  let value = textHash(text);
  let suffix = '';
  for (let index = 0; index < SUFFIX_CHARACTERS; index += 1) {
    suffix += NAME_ALPHABET[value % NAME_ALPHABET.length];
    value = textHash(`${value}/${index}/${text}`);
  }
  return suffix;
}
