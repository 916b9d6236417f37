/**
 * The zone of a node, and whether the node counts in it.
 * Source: k8s.io/component-helpers node/topology/helpers.go for the precedence of the labels. The key format is ours.
 */
type Labels = Readonly<Record<string, string>> | undefined;

export const ZONE_LABEL = 'topology.kubernetes.io/zone';
export const REGION_LABEL = 'topology.kubernetes.io/region';
export const BETA_ZONE_LABEL = 'failure-domain.beta.kubernetes.io/zone';
export const BETA_REGION_LABEL = 'failure-domain.beta.kubernetes.io/region';
/** A node with this label is not counted in its zone. The value is ignored. */
export const EXCLUDE_DISRUPTION_LABEL = 'node.kubernetes.io/exclude-disruption';

/**
 * Zone key: `region/zone`, or `zone` without a region label, or '' without both. The beta labels have precedence, as
 * upstream. The key is stored, displayed and used as a metric dimension. It is unambiguous, because a label value has
 * no slash. Upstream joins region and zone with `:`, NUL, `:`, which metrics and consoles cannot display.
 */
export function zoneKeyOf(labels: Labels): string {
  const zone = labels?.[BETA_ZONE_LABEL] ?? labels?.[ZONE_LABEL] ?? '';
  const region = labels?.[BETA_REGION_LABEL] ?? labels?.[REGION_LABEL] ?? '';
  return region === '' ? zone : `${region}/${zone}`;
}

/** True when a node is not counted in its zone. It is still evaluated, marked and tainted like any other node. */
export const isExcluded = (labels: Labels): boolean =>
  labels !== undefined && Object.hasOwn(labels, EXCLUDE_DISRUPTION_LABEL);
