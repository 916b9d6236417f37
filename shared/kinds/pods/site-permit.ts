/**
 * Pods that the hub of a site decides about: annotation `nodekeeper.dev/site-hub` (docs/hub.md, decision 0068).
 *
 * The binding of a pod writes it, and nothing changes it afterwards. So the machine, the hub and the cluster always
 * agree who decides about this pod, whatever happens to the SitePolicy:
 *
 *   - the machine runs the pod only by permits of this hub; a heartbeat that the cluster answers permits nothing
 *   - the hub permits a pod to one machine at a time
 *   - the cluster removes no such pod for a machine that is silent
 *
 * A permit is for the time of the annotation `nodekeeper.dev/offline-stop-after`, with its time line (offline-stop.ts):
 * the machine counts from before it asked, the hub from when it answered.
 */
import { runsAgent } from '../../fleet/nodes/agent-version.ts';
import type { KubeNode, KubeObject, KubePod } from '../types.ts';
import { offlineStoppedAtMs } from './offline-stop.ts';

/** The user name of the hub. On a Node: its machine obeys the permits of this hub. */
export const SITE_HUB = 'nodekeeper.dev/site-hub';

/** The hub of a pod; undefined: the cluster decides about the pod. */
export const siteHubOf = ({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined =>
  metadata.annotations?.[SITE_HUB];

/** The machine obeys the permits of this hub. Undefined: of none. A kubelet obeys none, whatever an agent said. */
export function hubOfMachine(node: KubeNode): string | undefined {
  const hub = siteHubOf(node);
  return hub !== undefined && runsAgent(node) ? hub : undefined;
}

/** From the last permit until the pod has stopped on its machine. Milliseconds; undefined: it may run for ever. */
export const permitFenceMs = (pod: Pick<KubePod, 'metadata' | 'spec'>): number | undefined =>
  offlineStoppedAtMs(pod, 0);
