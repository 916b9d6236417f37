/** Which pods a hub may start on another machine without the cluster and where. */
import { schedulePod } from '../../../functions/scheduler/rule.ts';
import { defaultPolicy } from '../../../shared/fleet/policy.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Snapshot } from '../../../shared/scheduling/snapshot.rule.ts';
import { schedulablePod } from '../../../shared/scheduling/world.rule.ts';

/** Volumes that a machine makes without the cluster. */
const OWN_VOLUMES = new Set(['name', 'emptyDir', 'hostPath', 'downwardAPI', 'image']);
/** Other controllers know their pods by name, or count each of them. */
const INTERCHANGEABLE = new Set(['ReplicaSet', 'ReplicationController']);

/** Why the pod cannot be moved; undefined: it can. */
export function fixedBecause({ metadata, spec = {} }: KubePod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner !== undefined && !INTERCHANGEABLE.has(owner.kind ?? '')) return `it belongs to a ${owner.kind}`;
  if ((metadata.finalizers ?? []).length > 0) return 'it has finalizers';
  for (const volume of spec.volumes ?? []) {
    const source = Object.keys(volume).find((key) => !OWN_VOLUMES.has(key));
    if (source !== undefined) return `its volume ${volume.name} (${source}) needs the cluster`;
  }
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const needy = containers.find(
    ({ env = [], envFrom = [] }) =>
      envFrom.length > 0 || env.some(({ valueFrom }) => valueFrom?.configMapKeyRef ?? valueFrom?.secretKeyRef),
  );
  return needy === undefined ? undefined : `the environment of container ${needy.name} needs the cluster`;
}

/** The best node for it, by the filters and scores of the scheduler. `snapshot`: without silent machines. */
export function targetOf(pod: KubePod, snapshot: Snapshot): string | undefined {
  const { nodeName: _, ...spec } = pod.spec ?? {};
  const { defaultTopologySpread } = defaultPolicy;
  const outcome = schedulePod(schedulablePod({ ...pod, spec }), snapshot, {
    percentageOfNodesToScore: 100,
    defaultTopologySpread,
  });
  return outcome.kind === 'fits' ? outcome.nodeName : undefined;
}
