/** When a parked work is retried, and which parts of its object are stored. */
import { defined } from '../defined.ts';
import { type NamedVolume, namesVolumes } from '../fleet/nodes/attached-volumes.rule.ts';
import { BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL } from '../fleet/nodes/node-digest.ts';
import type { KubeNode, KubeObject } from '../kinds/types.ts';

/** From a retry to the next one, by the number of retries so far. The first retry is due at once. Milliseconds. */
const BACKOFF_MS = [5_000, 10_000] as const;
/**
 * From this age, counted from when a work was parked first, a failed retry is the last one. Milliseconds. Longer than
 * the minutes for which a hot key is throttled, and shorter than the hour for which an Event is kept: a repeated Event
 * must still find the first one.
 */
export const PARKED_AGE_MAX_MS = 30 * 60_000;
/**
 * A row without a result of its retries is given up after this many retries, and this long after its last work was
 * parked. Milliseconds. Only a retry that ends its process each time, or an outage of object-stream, leaves no result.
 * The stream itself keeps a failed record for one hour.
 */
const RETRIES_WITHOUT_RESULT_MAX = 360;
export const ROW_AGE_MAX_MS = 2 * 3_600_000;

const ZONE_LABELS: readonly string[] = [ZONE_LABEL, REGION_LABEL, BETA_ZONE_LABEL, BETA_REGION_LABEL];
/** Longer texts are not stored. No valid name, label value or providerID is longer. UTF-16 units. */
const TEXT_LENGTH_MAX = 512;
/** Pod CIDRs that are kept. A Node has two at most. */
const POD_CIDRS_MAX = 4;

export const retryDelayMs = (tries: number): number => BACKOFF_MS[Math.min(tries, BACKOFF_MS.length - 1)]!;

export const isWorkGivenUp = (parkedAtMs: number, nowMs: number): boolean => nowMs - parkedAtMs >= PARKED_AGE_MAX_MS;

export const isRowGivenUp = (
  { tries, workParkedAtMs }: { readonly tries: number; readonly workParkedAtMs: Readonly<Record<string, number>> },
  nowMs: number,
): boolean =>
  tries >= RETRIES_WITHOUT_RESULT_MAX && nowMs - Math.max(...Object.values(workParkedAtMs)) >= ROW_AGE_MAX_MS;

/** The parts of a Node that its works need when the Node no longer exists: a few hundred bytes. */
export function parkedNode({ metadata, spec }: KubeNode): KubeNode {
  const labels = Object.entries(metadata.labels ?? {}).filter(
    ([key, value]) => ZONE_LABELS.includes(key) && isKept(value),
  );
  const podCIDRs = Array.isArray(spec?.podCIDRs) ? spec.podCIDRs.slice(0, POD_CIDRS_MAX).filter(isKept) : [];
  const providerID = spec?.providerID;
  return {
    metadata: { ...namesOf(metadata), labels: Object.fromEntries(labels) },
    spec: { podCIDRs, ...(isKept(providerID) ? { providerID } : {}) },
  };
}

/** The same for a Pod. If it has EBS volumes, one placeholder is stored, because only their existence matters. */
export function parkedPod({ metadata, spec }: KubeObject): KubeObject {
  const nodeName = spec?.['nodeName'];
  const volumes = spec?.['volumes'] as readonly NamedVolume[] | undefined;
  return {
    metadata: namesOf(metadata),
    spec: {
      ...(isKept(nodeName) ? { nodeName } : {}),
      ...(Array.isArray(volumes) && namesVolumes(volumes) ? { volumes: [{ persistentVolumeClaim: {} }] } : {}),
    },
  };
}

const isKept = (text: unknown): text is string => typeof text === 'string' && text.length <= TEXT_LENGTH_MAX;

const namesOf = ({ name, namespace, uid }: KubeObject['metadata']) => defined({ name, namespace, uid });
