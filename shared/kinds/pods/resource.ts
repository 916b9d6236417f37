import { storedResource } from '../stored-resource.ts';
import type { KubePod } from '../types.ts';

export const PODS = storedResource({
  group: '',
  resource: 'pods',
  kind: 'Pod',
  scope: 'namespaced',
  shards: 8,
  selectableFields: {
    'spec.nodeName': (pod: KubePod) => pod.spec?.nodeName ?? '',
    'spec.restartPolicy': (pod: KubePod) => pod.spec?.restartPolicy ?? '',
    'spec.schedulerName': (pod: KubePod) => pod.spec?.schedulerName ?? '',
    'spec.serviceAccountName': (pod: KubePod) => pod.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': (pod) => String(pod.spec?.hostNetwork === true),
    'status.phase': (pod: KubePod) => pod.status?.phase ?? '',
    'status.podIP': (pod: KubePod) => pod.status?.podIP ?? '',
    'status.nominatedNodeName': (pod: KubePod) => pod.status?.nominatedNodeName ?? '',
  },
});

/** A pod that has succeeded or failed. */
export const isTerminated = (pod: KubePod): boolean =>
  pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
