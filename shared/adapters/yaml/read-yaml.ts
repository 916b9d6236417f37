/** One YAML document as a value, as clients of the Kubernetes API write it. */
import { parseDocument } from 'yaml';

export type YamlResult =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'malformed'; readonly message: string };

/** Aliases in one document: enough for any configuration, too few to blow one up. */
const ALIASES_MAX = 100;

/** YAML 1.1, as Kubernetes reads it: `yes` and `on` are true. A key given twice is malformed. */
export function readYaml(text: string): YamlResult {
  const document = parseDocument(text, { version: '1.1', uniqueKeys: true, strict: true, logLevel: 'silent' });
  const [fault] = document.errors;
  if (fault !== undefined) return { kind: 'malformed', message: fault.message };
  try {
    return { kind: 'read', value: document.toJS({ maxAliasCount: ALIASES_MAX }) };
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return { kind: 'malformed', message: error.message };
  }
}
