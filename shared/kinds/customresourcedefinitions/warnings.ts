/** What the answer to a write of a definition warns of. Pure. */

import { isJsonObject } from '../../kubernetes/json.ts';
import type { KubeCustomResourceDefinition } from './definition.ts';

export const definitionWarnings = ({ spec }: KubeCustomResourceDefinition): readonly string[] =>
  (spec?.versions ?? []).some(({ schema }) => hasRules(schema))
    ? ['x-kubernetes-validations are stored, and not evaluated yet: objects that break them are accepted']
    : [];

function hasRules(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasRules);
  if (!isJsonObject(value)) return false;
  const { 'x-kubernetes-validations': rules } = value;
  return (Array.isArray(rules) && rules.length > 0) || Object.values(value).some(hasRules);
}
