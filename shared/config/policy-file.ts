import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument, visit, type YAMLMap } from 'yaml';
import { type ParsedPolicy, parsePolicy } from './policy.ts';
import type { PolicyFault } from './policy-rules.ts';

const API_VERSION = 'nodekeeper.dev/v1alpha1';
const KIND = 'Policy';

/**
 * A policy from its YAML file: a plain map of policy fields, or the same under `spec` of a document with `apiVersion:
 * nodekeeper.dev/v1alpha1` and `kind: Policy`. An empty file is the default policy. Faults carry `file:line`. It is
 * separate from policy.ts, because functions receive the policy as JSON and do not bundle a YAML parser.
 *
 * @param fileName as it should appear in faults
 */
export function policyFromYaml(text: string, fileName: string): ParsedPolicy {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const at = (offset: number): string => `${fileName}:${lines.linePos(offset).line || 1}`;

  if (document.errors.length > 0) {
    const faults = document.errors.map((error): PolicyFault => {
      const firstLine = error.message.split('\n', 1)[0] ?? error.code;
      return { field: '', value: undefined, rule: firstLine.replace(/ at line \d+.*$/, ''), at: at(error.pos[0]) };
    });
    return { kind: 'faults', faults };
  }

  // A policy is short, so it needs no aliases; without them no value can expand or be undefined.
  const aliases: PolicyFault[] = [];
  visit(document, {
    Alias: (_key, alias) => {
      const offset = alias.range?.[0] ?? 0;
      aliases.push({ field: '', value: `*${alias.source}`, rule: 'must be written out, not an alias', at: at(offset) });
    },
  });
  if (aliases.length > 0) return { kind: 'faults', faults: aliases };

  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) return parsePolicy({});
  if (!isMap(root)) {
    return { kind: 'faults', faults: [{ ...wholeFault(document.toJS()), at: at(root.range?.[0] ?? 0) }] };
  }

  const enveloped = root.has('apiVersion') || root.has('kind') || root.has('spec');
  if (!enveloped) return located(document, root, at);

  const faults = envelopeFaults(document, root, at);
  const spec = root.get('spec', true) as unknown;
  if (spec === undefined || (isScalar(spec) && spec.value === null)) {
    return faults.length > 0 ? { kind: 'faults', faults } : parsePolicy({});
  }
  if (!isMap(spec)) {
    const value = (document.toJS() as Record<string, unknown>)['spec'];
    return {
      kind: 'faults',
      faults: [...faults, { ...wholeFault(value), field: 'spec', at: keyAt(root, 'spec', at) }],
    };
  }
  const parsed = located(document, spec, at);
  if (faults.length === 0) return parsed;
  return { kind: 'faults', faults: parsed.kind === 'faults' ? [...faults, ...parsed.faults] : faults };
}

const wholeFault = (value: unknown): PolicyFault => ({ field: '', value, rule: 'must be a map of policy fields' });

type At = (offset: number) => string;

function located(document: Document, fields: YAMLMap, at: At): ParsedPolicy {
  const parsed = parsePolicy(fields.toJS(document));
  if (parsed.kind === 'ok') return parsed;
  return { kind: 'faults', faults: parsed.faults.map((fault) => ({ ...fault, at: faultAt(fields, fault, at) })) };
}

/** The default of one field may break a relation with another field that the file sets. */
function faultAt(fields: YAMLMap, fault: PolicyFault, at: At): string {
  if (fault.field.includes('[')) return partAt(fields, fault, at);
  const written = fields.has(fault.field) || fault.other === undefined ? fault.field : fault.other;
  return keyAt(fields, written, at);
}

/** Position of a fault inside a list, such as `profiles[1].name`: the deepest part that the file has. */
function partAt(fields: YAMLMap, { field, other }: PolicyFault, at: At): string {
  const path = field.split(/[.[\]]+/).filter((part) => part !== '');
  const withOther = other === undefined ? [] : [[...path.slice(0, -1), other]];
  for (const parts of [path, ...withOther, ...path.map((_, index) => path.slice(0, -1 - index))]) {
    if (parts.length === 0 || !fields.hasIn(parts)) continue;
    const parent = fields.getIn(parts.slice(0, -1), true);
    const name = parts.at(-1)!;
    if (parts.length === 1) return keyAt(fields, name, at);
    if (isMap(parent)) return keyAt(parent, name, at);
    const value = fields.getIn(parts, true);
    if (isNode(value)) return at(value.range?.[0] ?? 0);
  }
  return keyAt(fields, path[0] ?? '', at);
}

/** Position of the key; the start of the map if the key is absent. */
function keyAt(map: YAMLMap, key: string, at: At): string {
  const pair = map.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
  const node = isScalar(pair?.key) ? pair.key : map;
  return at(node.range?.[0] ?? 0);
}

function envelopeFaults(document: Document, root: YAMLMap, at: At): PolicyFault[] {
  const expected: Readonly<Record<string, string>> = { apiVersion: API_VERSION, kind: KIND };
  const faults: PolicyFault[] = [];
  for (const [field, value] of Object.entries(expected)) {
    if (root.get(field) === value) continue;
    faults.push({ field, value: root.get(field), rule: `must be ${value}`, at: keyAt(root, field, at) });
  }
  const known = new Set(['apiVersion', 'kind', 'metadata', 'spec']);
  for (const [field, value] of Object.entries(root.toJS(document) as Record<string, unknown>)) {
    if (known.has(field)) continue;
    faults.push({ field, value, rule: 'belongs under spec', at: keyAt(root, field, at) });
  }
  return faults;
}
