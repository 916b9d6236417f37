/**
 * When a ReplicaSet runs the template of its Deployment, and the hash in its name. Source:
 * pkg/controller/deployment/util/deployment_util.go (EqualIgnoreHash), pkg/controller/controller_utils.go
 * (ComputeHash).
 *
 * The hash is only part of a name. Equality of the templates decides which ReplicaSet is current, so another release of
 * the hash, or a ReplicaSet from another cluster, starts no rollout.
 */

import { defaultPodSpec } from '../../../shared/kinds/pods/spec-defaults.ts';
import { canonicalQuantity } from '../../../shared/kubernetes/quantity.ts';
import { textHash } from '../../../shared/text.ts';
import type { PodTemplateSpec } from '../workload-types.ts';
import { NAME_ALPHABET } from './generated-name.rule.ts';

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
