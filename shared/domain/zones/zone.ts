/**
 * Which zone a node belongs to, and whether it counts there.
 * Source: k8s.io/component-helpers node/topology/helpers.go (which label wins); the text of the key is our own.
 */
type Labels = Readonly<Record<string, string>> | undefined;

export const ZONE_LABEL = 'topology.kubernetes.io/zone';
export const REGION_LABEL = 'topology.kubernetes.io/region';
export const BETA_ZONE_LABEL = 'failure-domain.beta.kubernetes.io/zone';
export const BETA_REGION_LABEL = 'failure-domain.beta.kubernetes.io/region';
/** Presence alone excludes a node from zone health, whatever the value. */
export const EXCLUDE_DISRUPTION_LABEL = 'node.kubernetes.io/exclude-disruption';

/**
 * Zone key: `region/zone` with a region, the zone alone without, the empty text with neither. The beta labels win, as
 * upstream. The same text is stored, shown and used as a metric dimension; it cannot be ambiguous, because a label
 * value holds no slash. (Upstream joins region and zone with `:`, NUL, `:`, which no metric or console can show.)
 */
export function zoneKeyOf(labels: Labels): string {
  const zone = labels?.[BETA_ZONE_LABEL] ?? labels?.[ZONE_LABEL] ?? '';
  const region = labels?.[BETA_REGION_LABEL] ?? labels?.[REGION_LABEL] ?? '';
  return region === '' ? zone : `${region}/${zone}`;
}

/** Whether a node is left out of its zone's counts. It is watched, marked and tainted like any other. */
export const isExcluded = (labels: Labels): boolean =>
  labels !== undefined && Object.hasOwn(labels, EXCLUDE_DISRUPTION_LABEL);
