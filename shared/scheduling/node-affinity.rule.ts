/**
 * NodeAffinity: `nodeSelector` and node affinity.
 *
 * Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go,
 * staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../kinds/types.ts';
import type { Filter, Rejection } from './filter.rule.ts';
import type { Labels } from './terms.rule.ts';
import type { SchedulableNode, SchedulablePod } from './world.rule.ts';

const REJECTED: Rejection = {
  plugin: 'NodeAffinity',
  reasons: ["node(s) didn't match Pod's node affinity/selector"],
  isResolvable: false,
};
/** 64 bits have at most 19 digits. */
const INTEGER = /^(?:\+|(-))?0*(\d{1,19})$/;
const NAME_FIELD = 'metadata.name';

/** Base 10, 64 bits; undefined for any other text. One of 380,000 digits would be converted for 170 ms per node. */
function integerOf(text: string | undefined): bigint | undefined {
  const [, sign = '', digits] = INTEGER.exec(text ?? '') ?? [];
  if (digits === undefined) return undefined;
  const value = BigInt(sign + digits);
  return value === BigInt.asIntN(64, value) ? value : undefined;
}

function comparesTo(label: string | undefined, wanted: string | undefined, operator: 'Gt' | 'Lt'): boolean {
  const left = integerOf(label);
  const right = integerOf(wanted);
  if (left === undefined || right === undefined) return false;
  return operator === 'Gt' ? left > right : left < right;
}

function expressionMatches({ key, operator, values = [] }: NodeSelectorRequirement, labels: Labels): boolean {
  const label = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return label === undefined || !values.includes(label);
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
    case 'Gt':
    case 'Lt':
      return comparesTo(label, values[0], operator);
    default:
      return false;
  }
}

function fieldMatches({ key, operator, values = [] }: NodeSelectorRequirement, nodeName: string): boolean {
  if (key !== NAME_FIELD || values.length !== 1) return false;
  if (operator === 'In') return values[0] === nodeName;
  return operator === 'NotIn' && values[0] !== nodeName;
}

/** An empty term matches no node. */
export function nodeTermMatches(term: NodeSelectorTerm, node: Pick<SchedulableNode, 'name' | 'labels'>): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  return (
    matchExpressions.every((each) => expressionMatches(each, node.labels)) &&
    matchFields.every((each) => fieldMatches(each, node.name))
  );
}

/** `nodeSelector` and the required node affinity. */
export function matchesNodeAffinity(
  pod: Pick<SchedulablePod, 'nodeSelector' | 'nodeTerms'>,
  node: Pick<SchedulableNode, 'name' | 'labels'>,
): boolean {
  for (const key in pod.nodeSelector) if (node.labels[key] !== pod.nodeSelector[key]) return false;
  return pod.nodeTerms === undefined || pod.nodeTerms.some((term) => nodeTermMatches(term, node));
}

export const nodeAffinityFilter =
  (pod: SchedulablePod): Filter =>
  ({ node }) =>
    matchesNodeAffinity(pod, node) ? undefined : REJECTED;

/** The only nodes that can match; undefined: any node. Every term must require names for that. */
export function namedNodes({ nodeTerms }: SchedulablePod): ReadonlySet<string> | undefined {
  if (nodeTerms === undefined || nodeTerms.length === 0) return undefined;
  const names = new Set<string>();
  for (const { matchFields = [] } of nodeTerms) {
    const required = matchFields.filter(({ key, operator }) => key === NAME_FIELD && operator === 'In');
    const [first, ...others] = required.map(({ values = [] }) => values);
    if (first === undefined) return undefined;
    for (const name of first) if (others.every((values) => values.includes(name))) names.add(name);
  }
  return names;
}

/** Sum of the weights of the preferences that match. */
export const nodeAffinityScore = (pod: SchedulablePod, node: SchedulableNode): number =>
  pod.preferredNodeTerms.reduce(
    (sum, { weight, preference }) => (nodeTermMatches(preference, node) ? sum + weight : sum),
    0,
  );
