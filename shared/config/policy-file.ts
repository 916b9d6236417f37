import { isJsonObject, type JsonObject } from '../kubernetes/json.ts';
import { type ParsedPolicy, parsePolicy } from './policy.ts';
import type { PolicyFault } from './policy-rules.ts';
import { readOneYaml, type YamlDocument, type YamlPath } from './yaml-documents.ts';

const ENVELOPE = { apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'Policy' };
const ENVELOPE_FIELDS = [...Object.keys(ENVELOPE), 'metadata', 'spec'];

/**
 * A policy from its YAML file: a plain map of policy fields, or the same under `spec` of a document with `apiVersion:
 * nodekeeper.dev/v1alpha1` and `kind: Policy`. An empty file is the default policy. Faults carry `file:line`. It is
 * separate from policy.ts, because functions receive the policy as JSON and do not bundle a YAML parser.
 *
 * @param fileName as it should appear in faults
 */
export function policyFromYaml(text: string, fileName: string): ParsedPolicy {
  const read = readOneYaml(text, fileName);
  if (read.kind === 'malformed') {
    const faults = read.faults.map(({ message: rule, value, at }) => ({ field: '', value, rule, at }));
    return { kind: 'faults', faults };
  }
  const { document } = read;
  const root = document.value ?? {};
  if (!isJsonObject(root)) return { kind: 'faults', faults: [{ ...wholeFault(root), at: document.at([]) }] };
  if (!['apiVersion', 'kind', 'spec'].some((field) => Object.hasOwn(root, field))) return located(document, root, []);

  const faults = envelopeFaults(document, root);
  const spec = root['spec'] ?? {};
  const parsed: ParsedPolicy = isJsonObject(spec)
    ? located(document, spec, ['spec'])
    : { kind: 'faults', faults: [{ ...wholeFault(spec), field: 'spec', at: document.at(['spec']) }] };
  if (faults.length === 0) return parsed;
  return { kind: 'faults', faults: parsed.kind === 'faults' ? [...faults, ...parsed.faults] : faults };
}

const wholeFault = (value: unknown): PolicyFault => ({ field: '', value, rule: 'must be a map of policy fields' });

/** @param prefix path of the fields in the document */
function located(document: YamlDocument, fields: JsonObject, prefix: YamlPath): ParsedPolicy {
  const parsed = parsePolicy(fields);
  if (parsed.kind === 'ok') return parsed;
  const placeOf = (fault: PolicyFault): string => document.at([...prefix, ...writtenPath(fields, fault)]);
  return { kind: 'faults', faults: parsed.faults.map((fault) => ({ ...fault, at: placeOf(fault) })) };
}

/**
 * Path of a fault, such as that of `profiles[1].name`. The default of one field may break a relation with another field
 * that the file sets: then the path of that one.
 */
function writtenPath(fields: JsonObject, { field, other }: PolicyFault): YamlPath {
  // A fault inside a list has brackets. Without them a dot is part of the key, which is then no policy field.
  const parts = field.includes('[') ? field.split(/[.[\]]+/) : [field];
  const path = parts.flatMap((part) => (part === '' ? [] : /^\d+$/.test(part) ? Number(part) : part));
  const ofOther = other === undefined ? path : [...path.slice(0, -1), other];
  return isWritten(fields, path) ? path : ofOther;
}

function isWritten(fields: JsonObject, path: YamlPath): boolean {
  let value: unknown = fields;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return false;
    value = (value as Readonly<Record<string | number, unknown>>)[step];
  }
  return true;
}

function envelopeFaults({ at }: YamlDocument, root: JsonObject): PolicyFault[] {
  const faults: PolicyFault[] = [];
  for (const [field, expected] of Object.entries(ENVELOPE)) {
    const value = root[field];
    if (value !== expected) faults.push({ field, value, rule: `must be ${expected}`, at: at([field]) });
  }
  for (const [field, value] of Object.entries(root)) {
    if (ENVELOPE_FIELDS.includes(field)) continue;
    faults.push({ field, value, rule: 'belongs under spec', at: at([field]) });
  }
  return faults;
}
