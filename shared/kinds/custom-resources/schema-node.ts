/**
 * Schemas of custom resources: JSONSchemaProps of a definition, compiled once per definition and process. Each node of
 * a structural schema is known before the values are.
 *
 * Source: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/v1/types_jsonschema.go, pkg/apiserver/schema.
 */

import { isJsonObject, type JsonObject } from '../../kubernetes/json.ts';
import type { CompiledPattern } from '../../patterns.ts';

/** JSONSchemaProps as it is stored, with the members that are used here. */
export interface JsonSchema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly title?: string;
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly multipleOf?: number;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly maxProperties?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly JsonObject[];
}

export interface SchemaNode {
  readonly schema: JsonSchema;
  /** Empty: any type. */
  readonly types: readonly string[];
  readonly properties: ReadonlyMap<string, SchemaNode>;
  /** Of the members without a property. `any`: they have no schema. Undefined: there are none. */
  readonly additional: SchemaNode | 'any' | undefined;
  readonly items: SchemaNode | undefined;
  readonly keepsUnknown: boolean;
  readonly isEmbedded: boolean;
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | undefined;
  /** JSON of the permitted values. */
  readonly enumTexts: ReadonlySet<string> | undefined;
  /** Whether a text matches the pattern. */
  readonly matches: ((text: string) => boolean) | undefined;
  /** It or a node below it has a default. */
  readonly hasDefaults: boolean;
  /** It or a node below it has `x-kubernetes-validations`. */
  readonly hasRules: boolean;
}

export type CompilePattern = (pattern: string) => CompiledPattern;

/** Whether any schema below this one has a pattern: without one, no pattern engine is loaded. */
export const hasPatterns = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.some(hasPatterns);
  if (!isJsonObject(schema)) return false;
  return typeof schema['pattern'] === 'string' || Object.values(schema).some(hasPatterns);
};

/** Whether any schema below this one has rules: without one, nothing of CEL is loaded. */
export const mentionsRules = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.some(mentionsRules);
  if (!isJsonObject(schema)) return false;
  const { 'x-kubernetes-validations': rules } = schema;
  return (Array.isArray(rules) && rules.length > 0) || Object.values(schema).some(mentionsRules);
};

/** @param compilePattern a malformed pattern, which validation refuses, matches every text */
export function compileSchema(schema: JsonSchema, compilePattern: CompilePattern): SchemaNode {
  const compile = (inner: JsonSchema): SchemaNode => compileSchema(inner, compilePattern);
  const properties = new Map(Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, compile(inner)]));
  const { additionalProperties: extra } = schema;
  const additional = isJsonObject(extra) ? compile(extra as JsonSchema) : extra === true ? 'any' : undefined;
  const items = schema.items === undefined ? undefined : compile(schema.items);
  const below = [
    ...properties.values(),
    ...(typeof additional === 'object' ? [additional] : []),
    ...(items ? [items] : []),
  ];
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  return {
    schema,
    types: isIntOrString ? ['integer', 'string'] : schema.type === undefined || schema.type === '' ? [] : [schema.type],
    properties,
    additional,
    items,
    keepsUnknown: schema['x-kubernetes-preserve-unknown-fields'] === true,
    isEmbedded: schema['x-kubernetes-embedded-resource'] === true,
    allOf: (schema.allOf ?? []).map(compile),
    anyOf: (schema.anyOf ?? []).map(compile),
    oneOf: (schema.oneOf ?? []).map(compile),
    not: schema.not === undefined ? undefined : compile(schema.not),
    enumTexts: schema.enum === undefined ? undefined : new Set(schema.enum.map(canonicalJson)),
    matches: matcherOf(schema.pattern, compilePattern),
    hasDefaults: below.some((node) => node.hasDefaults || node.schema.default !== undefined),
    hasRules: (schema['x-kubernetes-validations'] ?? []).length > 0 || below.some(({ hasRules }) => hasRules),
  };
}

/** Compiled at the first text: most patterns of a large definition are never asked. */
function matcherOf(pattern: string | undefined, compilePattern: CompilePattern): SchemaNode['matches'] {
  if (pattern === undefined || pattern === '') return undefined;
  let matches: SchemaNode['matches'];
  return (text) => {
    if (matches === undefined) {
      const compiled = compilePattern(pattern);
      matches = compiled.kind === 'compiled' ? compiled.matches : () => true;
    }
    return matches(text);
  };
}

/** JSON with sorted members: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(',')}}`;
}

/** The node of a member of an object; 'any' where nothing is known of it, undefined where it has no place. */
export function nodeOfMember(node: SchemaNode, name: string): SchemaNode | 'any' | undefined {
  return node.properties.get(name) ?? node.additional ?? (node.keepsUnknown ? 'any' : undefined);
}

/** Members that every object has, at the root and in an embedded resource. */
export const TYPE_AND_METADATA: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);
