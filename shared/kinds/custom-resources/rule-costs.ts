/**
 * What the rules of a definition cost at most: the cost of each, times the values of its node that one request can
 * have. Pure.
 *
 * Sources: k8s.io/apiserver pkg/cel/common/schemas.go, pkg/cel/limits.go; k8s.io/apiextensions-apiserver
 * pkg/apiserver/schema/cel/compilation.go, pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
 */

import { forbiddenField } from '../../kubernetes/causes.ts';
import { type SizeAt, times } from '../../kubernetes/cel/estimate.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { escapedName } from './rule-values.ts';
import type { SchemaNode } from './schema-node.ts';

/** StaticEstimatedCostLimit. */
const RULE_COST_MAX = 10_000_000;
/** StaticEstimatedCRDCostLimit. */
const SCHEMA_COST_MAX = 100_000_000;
/** The bytes of a request that upstream assumes. */
const REQUEST_BYTES_MAX = 3 * 1_024 * 1_024;
/** Rules that a refused total names. */
const NAMED_MAX = 4;

/** The values of a node in a request. */
export interface Extent {
  /** Characters, items or members of one. 0 for what has a size of its own. */
  readonly elementsMax: number;
  /** As JSON. */
  readonly bytesMin: number;
  readonly items?: Extent | undefined;
  readonly isMap?: boolean;
  /** By their names in expressions. */
  readonly members?: ReadonlyMap<string, Extent>;
}

const fixed = (bytesMin: number, elementsMax = 0): Extent => ({ elementsMax, bytesMin });
/** Without its quotation marks. */
const TEXT_MAX = REQUEST_BYTES_MAX - 2;
const NAMES = ['name', 'generateName'];

export type ExtentOf = (node: SchemaNode) => Extent | undefined;

/** The extents of the nodes of a resource. undefined: rules cannot read the node. */
export function extentsOf(root: SchemaNode): ExtentOf {
  const known = new Map<SchemaNode, Extent | undefined>();
  const extentOf = (node: SchemaNode): Extent | undefined => {
    if (!known.has(node)) known.set(node, extentBy(extentOf, node, node === root || node.isEmbedded));
    return known.get(node);
  };
  return extentOf;
}

/** @param isResource apiVersion, kind and names are visible */
function extentBy(extentOf: ExtentOf, node: SchemaNode, isResource: boolean): Extent | undefined {
  const { schema, additional } = node;
  const { maxLength, maxItems, maxProperties } = schema;
  if (schema['x-kubernetes-int-or-string'] === true) return fixed(1, charactersMax(maxLength, TEXT_MAX));
  switch (schema.type) {
    case 'array': {
      const items = node.items && extentOf(node.items);
      if (items === undefined) return undefined;
      return { elementsMax: notNegative(maxItems) ?? Math.floor(TEXT_MAX / (items.bytesMin + 1)), bytesMin: 2, items };
    }
    case 'object': {
      if (typeof additional !== 'object') return objectExtent(extentOf, node, isResource);
      const items = extentOf(additional);
      if (items === undefined) return undefined;
      const elementsMax = notNegative(maxProperties) ?? Math.floor(TEXT_MAX / (items.bytesMin + 6));
      return { elementsMax, bytesMin: 2, items, isMap: true };
    }
    case 'string':
      return textExtent(node);
    case 'boolean':
      return fixed(4);
    case 'number':
    case 'integer':
      return fixed(1);
    default:
      return undefined;
  }
}

const notNegative = (count: number | undefined): number | undefined =>
  count === undefined ? undefined : Math.max(0, count);
/** A character has up to four bytes. */
const charactersMax = (maxLength: number | undefined, otherwise: number): number =>
  maxLength === undefined ? otherwise : Math.max(0, maxLength) * 4;

function textExtent({ schema: { format, maxLength, enum: values = [] } }: SchemaNode): Extent {
  switch (format) {
    case 'byte':
      return fixed(2, notNegative(maxLength) ?? TEXT_MAX);
    case 'duration':
      return fixed(3, 32);
    case 'date':
      return fixed(12, 12);
    case 'date-time':
      return fixed(21, 32);
    default: {
      const lengths = values.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0));
      return fixed(2, charactersMax(maxLength, lengths.length === 0 ? TEXT_MAX : Math.max(...lengths)));
    }
  }
}

function objectExtent(extentOf: ExtentOf, node: SchemaNode, isResource: boolean): Extent {
  const {
    schema: { required = [] },
    properties,
  } = node;
  const members = new Map<string, Extent>();
  let bytesMin = 2;
  for (const [name, property] of properties) {
    const extent = extentOf(property);
    const escaped = escapedName(name);
    if (extent === undefined) continue;
    if (escaped !== undefined) members.set(escaped, extent);
    const isWritten = required.includes(name) && property.schema.default === undefined;
    bytesMin += isWritten ? Buffer.byteLength(name) + extent.bytesMin + 4 : 0;
  }
  if (isResource && !declaresNames(properties)) {
    const text = fixed(2, TEXT_MAX);
    members.set('apiVersion', text).set('kind', text);
    members.set('metadata', { ...fixed(2), members: new Map(NAMES.map((name) => [name, text])) });
  }
  return { elementsMax: 0, bytesMin, members };
}

/** The definition's own schemas of what every resource has count if all of them exist. */
function declaresNames(properties: SchemaNode['properties']): boolean {
  const names = properties.get('metadata')?.properties;
  const nodes = [properties.get('apiVersion'), properties.get('kind'), ...NAMES.map((name) => names?.get(name))];
  return nodes.every((node) => node?.schema.type === 'string');
}

/** Sizes of values below `self` and `oldSelf`. cel-go's paths of other values begin elsewhere; upstream's do too. */
export const sizesOf =
  (self: Extent): SizeAt =>
  (path) => {
    let at: Extent | undefined = self;
    for (const step of path.slice(1)) {
      if (step === '@keys') at = at.isMap ? fixed(0) : undefined;
      else at = step === '@items' || step === '@values' ? at.items : at.members?.get(step);
      if (at === undefined) return undefined;
    }
    return at.elementsMax;
  };

/** How many values a child of the node has at most, for each of the node. undefined: no bound is declared. */
export function childrenMax({ schema }: SchemaNode): number | undefined {
  if (schema.type === 'array') return notNegative(schema.maxItems);
  return schema.type === 'object' && schema.additionalProperties !== undefined ? notNegative(schema.maxProperties) : 1;
}

/** The costs of the rules of one schema. */
export class RuleCosts {
  readonly #isUnchanged: boolean;
  readonly #expensive: { readonly field: string; readonly cost: number }[] = [];
  #total = 0;

  /** @param isUnchanged the stored definition has the same schema: its rules stay, though their total is bounded */
  constructor(isUnchanged: boolean) {
    this.#isUnchanged = isUnchanged;
  }

  /** @param countMax of the values at the node. undefined: as many as a request holds */
  ofRule(field: string, cost: number, countMax: number | undefined, { bytesMin }: Extent): Cause[] {
    return this.#add(
      field,
      'estimated rule cost',
      times(cost, countMax ?? Math.floor(REQUEST_BYTES_MAX / (bytesMin + 1))),
    );
  }

  /** A message is made once. */
  ofMessage(field: string, cost: number): Cause[] {
    return this.#add(field, 'estimated messageExpression cost', cost);
  }

  #add(field: string, name: string, cost: number): Cause[] {
    this.#total += cost;
    if (cost >= SCHEMA_COST_MAX / 100) this.#expensive.push({ field, cost });
    if (cost <= RULE_COST_MAX || this.#isUnchanged) return [];
    return [forbiddenField(field, exceeded(name, cost, RULE_COST_MAX))];
  }

  /** @param path of the schema */
  ofTotal(path: string): Cause[] {
    if (this.#total <= SCHEMA_COST_MAX) return [];
    const part = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
    const named = this.#expensive.toSorted((one, other) => (one.cost < other.cost ? 1 : -1)).slice(0, NAMED_MAX);
    const name = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [
      ...named.map(({ field }) => forbiddenField(field, part)),
      forbiddenField(path, exceeded(name, this.#total, SCHEMA_COST_MAX)),
    ];
  }
}

function exceeded(name: string, cost: number, costMax: number): string {
  const ratio = cost / costMax;
  const factor = ratio > 100 ? 'more than 100x' : `${ratio.toFixed(ratio < 1.5 ? 6 : 1)}x`;
  const advice =
    'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared';
  return `${name} exceeds budget by factor of ${factor} (${advice})`;
}
