/** Which hub decides about a pod that is bound to a node now. */
import { offlineStopSeconds } from '../pods/offline-stop.ts';
import { SITE_HUB } from '../pods/site-permit.ts';
import type { KubePod, KubeSitePolicy } from '../types.ts';

/** Policies that are read. Those after them count for nothing. */
export const SITE_POLICIES_MAX = 500;

/** Whether policies matter for its binding. A pod of a DaemonSet belongs to its machine. */
export const mayHaveSiteHub = (pod: Pick<KubePod, 'metadata'> | undefined): boolean =>
  pod !== undefined &&
  offlineStopSeconds(pod) !== undefined &&
  !pod.metadata.ownerReferences?.some(({ controller, kind }) => controller && kind === 'DaemonSet');

/** A node to which the pod is bound in the same transaction, by the version that was read. */
export interface HubOfNode {
  readonly name: string;
  /** Its machine obeys the permits of this hub. */
  readonly siteHub?: string | undefined;
}

/** Whether a policy lets the hub of the node decide about pods of the namespace. */
export const isNamed = (
  { name, siteHub }: HubOfNode,
  namespace: string,
  policies: readonly KubeSitePolicy[],
): boolean =>
  policies.some(
    ({ spec = {} }) =>
      spec.hub === siteHub && spec.nodes?.includes(name) === true && spec.namespaces?.includes(namespace) === true,
  );

/**
 * The pod with the name of its hub. Policies that were read too early or too late do no harm: without the name the
 * cluster decides about the pod, with it the hub does, and both read it from the pod. A machine that does not obey the
 * hub runs no pod that the hub would move.
 */
export function withSiteHub(pod: KubePod, node: HubOfNode, policies: readonly KubeSitePolicy[]): KubePod {
  const { siteHub } = node;
  const { namespace = '', annotations } = pod.metadata;
  if (siteHub === undefined || !isNamed(node, namespace, policies) || !mayHaveSiteHub(pod)) return pod;
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...annotations, [SITE_HUB]: siteHub } } };
}
