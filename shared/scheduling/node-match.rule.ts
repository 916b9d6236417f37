/**
 * Whether a node suits a pod by what both state of themselves: NodeUnschedulable, TaintToleration and NodeAffinity
 * (`nodeSelector` and node affinity).
 *
 * Source: pkg/scheduler/framework/plugins, nodeunschedulable/node_unschedulable.go,
 * tainttoleration/taint_toleration.go and nodeaffinity/node_affinity.go;
 * staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
 */

import { NODE_RUNTIME, TAINT_UNSCHEDULABLE, tolerates } from '../fleet/nodes/taint.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../kinds/types.ts';
import type { Taint, Toleration } from '../kubernetes/kubernetes.ts';
import type { Filter, Rejection } from './filter.rule.ts';
import type { Labels } from './terms.rule.ts';
import type { SchedulableNode, SchedulablePod } from './world.rule.ts';

const UNSCHEDULABLE: Rejection = {
  plugin: 'NodeUnschedulable',
  reasons: ['node(s) were unschedulable'],
  isResolvable: false,
};
const UNTOLERATED: Rejection = {
  plugin: 'TaintToleration',
  reasons: ['node(s) had untolerated taint(s)'],
  isResolvable: false,
};
/** Our agent keeps pods with images away by this taint. */
const RUNS_PROCESSES: Rejection = {
  ...UNTOLERATED,
  reasons: [`node(s) run processes, not images (untolerated taint ${NODE_RUNTIME})`],
};
const CORDONED: Taint = { key: TAINT_UNSCHEDULABLE, effect: 'NoSchedule' };

const isTolerated = (taint: Readonly<Taint>, tolerations: readonly Toleration[]): boolean =>
  tolerations.some((each) => tolerates(each, taint));

export const toleratesCordon = (pod: Pick<SchedulablePod, 'tolerations'>): boolean =>
  isTolerated(CORDONED, pod.tolerations);

/** Every NoSchedule and NoExecute taint is tolerated; for how long does not matter. */
export const toleratesTaints = (
  { tolerations }: Pick<SchedulablePod, 'tolerations'>,
  { taints }: Pick<SchedulableNode, 'taints'>,
): boolean => taints.every((taint) => taint.effect === 'PreferNoSchedule' || isTolerated(taint, tolerations));

export const unschedulableFilter = (pod: SchedulablePod): Filter => {
  const tolerated = toleratesCordon(pod);
  return ({ node }) => (node.isUnschedulable && !tolerated ? UNSCHEDULABLE : undefined);
};

export const taintFilter =
  (pod: SchedulablePod): Filter =>
  ({ node }) => {
    if (toleratesTaints(pod, node)) return undefined;
    return node.taints.some(({ key }) => key === NODE_RUNTIME) &&
      !pod.tolerations.some(({ key }) => key === NODE_RUNTIME)
      ? RUNS_PROCESSES
      : UNTOLERATED;
  };

/** Number of PreferNoSchedule taints that the pod does not tolerate. */
export function preferNoScheduleTaints(pod: SchedulablePod, { taints }: SchedulableNode): number {
  let count = 0;
  for (const taint of taints) {
    if (taint.effect !== 'PreferNoSchedule') continue;
    const applicable = pod.tolerations.filter(({ effect = '' }) => effect === '' || effect === 'PreferNoSchedule');
    if (!isTolerated(taint, applicable)) count += 1;
  }
  return count;
}

const UNMATCHED: Rejection = {
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
    matchesNodeAffinity(pod, node) ? undefined : UNMATCHED;

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
