/** The containers of a pod, for the rules that assign resources of the machine. Ephemeral containers have none. */

import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';

export interface Container {
  readonly name: string;
  /** An `init` container terminates before the next one starts. A restartable one keeps running beside later ones. */
  readonly kind: 'init' | 'restartable' | 'app';
  readonly requests: Readonly<Record<string, unknown>>;
  readonly limits: Readonly<Record<string, unknown>>;
  /** Of its pod, for a container that has none of its own. Absent: the pod has none. */
  readonly podLimits?: Readonly<Record<string, unknown>>;
}

/** In the order in which they start. */
export function containersOf(pod: KubeObject): Container[] {
  const podLimits = recordOf(recordOf(pod.spec?.['resources'])['limits']);
  const ofPod = Object.keys(podLimits).length === 0 ? {} : { podLimits };
  const read = (list: unknown, init: boolean): Container[] =>
    recordsOf(list).map((each) => {
      const resources = recordOf(each['resources']);
      const restartable = init && each['restartPolicy'] === 'Always';
      return {
        name: textOf(each['name']),
        kind: init ? (restartable ? 'restartable' : 'init') : 'app',
        requests: recordOf(resources['requests']),
        limits: recordOf(resources['limits']),
        ...ofPod,
      };
    });
  return [...read(pod.spec?.['initContainers'], true), ...read(pod.spec?.['containers'], false)];
}
