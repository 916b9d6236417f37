/**
 * Static pods: from files of this machine. Their mirror pods show them in the API. Source: upstream
 * pkg/kubelet/config/{file,common}.go, pkg/kubelet/pod/mirror_client.go.
 */
import { MIRROR_POD_ANNOTATION } from '../../shared/access/node-restriction.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { KubeRequest } from '../ports/kube-api.ts';

const SOURCE_ANNOTATION = 'kubernetes.io/config.source';
const HASH_ANNOTATION = 'kubernetes.io/config.hash';
const SEEN_ANNOTATION = 'kubernetes.io/config.seen';
const DEFAULT_NAMESPACE = 'default';
/** Static pods are not evicted by taints of their node. */
const TOLERATION = { operator: 'Exists', effect: 'NoExecute' } as const;

/**
 * The pod of a manifest on this node.
 *
 * @param hash of the manifest, its file and this node: the uid of the pod
 * @param seenAt when the manifest was read first
 */
export function staticPod(manifest: KubePod, nodeName: string, hash: string, seenAt: string): KubePod {
  const { name = '', namespace = '', annotations, labels } = manifest.metadata;
  const { tolerations = [], ...spec } = manifest.spec ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-${nodeName.toLowerCase()}`,
      namespace: namespace || DEFAULT_NAMESPACE,
      uid: hash,
      ...(labels === undefined ? {} : { labels }),
      annotations: {
        ...annotations,
        [HASH_ANNOTATION]: hash,
        [SEEN_ANNOTATION]: seenAt,
        [SOURCE_ANNOTATION]: 'file',
      },
    },
    spec: { ...spec, nodeName, tolerations: [...tolerations, TOLERATION] },
    status: { phase: 'Pending' },
  };
}

/** Whether a mirror pod shows this static pod. */
export const isMirrorOf = (mirror: KubePod, { metadata }: KubePod): boolean =>
  mirror.metadata.name === metadata.name &&
  mirror.metadata.namespace === metadata.namespace &&
  mirror.metadata.annotations?.[MIRROR_POD_ANNOTATION] === metadata.uid;

/** Creates the mirror pod. Its owner is the Node. */
export function mirrorCreation(pod: KubePod, nodeName: string, nodeUid: string): KubeRequest {
  const { uid = '', annotations, ...metadata } = pod.metadata;
  return {
    method: 'POST',
    path: `/api/v1/namespaces/${encodeURIComponent(metadata.namespace ?? DEFAULT_NAMESPACE)}/pods`,
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...metadata,
        annotations: { ...annotations, [MIRROR_POD_ANNOTATION]: uid },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeUid, controller: true }],
      },
      spec: pod.spec,
    },
  };
}
