/**
 * When a ReplicaSet runs the template of its Deployment, and the hash in its name. Source:
 * pkg/controller/deployment/util/deployment_util.go (EqualIgnoreHash), pkg/controller/controller_utils.go
 * (ComputeHash).
 *
 * The hash is only part of a name. Equality of the templates decides which ReplicaSet is current, so another release of
 * the hash, or a ReplicaSet from another cluster, starts no rollout.
 *
 * Names of the pods of an owner. Source: apiserver storage/names/generate.go; the suffix is a hash instead of random
 * characters. A repeated creation makes the same pods.
 */
import { defaultPodSpec } from '../../shared/kinds/pods/spec-defaults.ts';
import { canonicalQuantity } from '../../shared/kubernetes/quantity.ts';
import { textHash } from '../../shared/text.ts';
import type { PodTemplateSpec } from './workload-types.ts';

export const HASH_LABEL = 'pod-template-hash';
/** Named in the hashed text: a later algorithm has another number. */
const ALGORITHM = 1;

export const isSameTemplate = (left: PodTemplateSpec | undefined, right: PodTemplateSpec | undefined): boolean =>
  canonicalTemplate(left) === canonicalTemplate(right);

/** Up to 10 characters of the alphabet of generated names. */
export function templateHash(template: PodTemplateSpec | undefined, collisionCount: number | undefined): string {
  const sum = textHash(`${ALGORITHM}/${canonicalTemplate(template)}/${collisionCount ?? ''}`);
  return [...String(sum)].map((digit) => NAME_ALPHABET[digit.charCodeAt(0) % NAME_ALPHABET.length]).join('');
}

/** The text of the template without its hash label, with all defaults, keys in order and nothing that is empty. */
function canonicalTemplate(template: PodTemplateSpec = {}): string {
  const { [HASH_LABEL]: _hash, ...labels } = template.metadata?.labels ?? {};
  const { creationTimestamp: _created, ...metadata } = template.metadata ?? {};
  return JSON.stringify(canonical({ metadata: { ...metadata, labels }, spec: defaultPodSpec(template.spec) }, ''));
}

const QUANTITY_MAPS = new Set(['limits', 'requests', 'overhead']);

function canonical(value: unknown, field: string): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => canonical(item, ''));
  if (typeof value !== 'object' || value === null) return value === null || value === '' ? undefined : value;
  const entries = Object.entries(value)
    .map(([key, item]) => [key, QUANTITY_MAPS.has(field) ? canonicalQuantity(item as string) : canonical(item, key)])
    .filter(([, item]) => item !== undefined)
    .sort(([left], [right]) => (String(left) < String(right) ? -1 : 1));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

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
