/** The containers of a pod, as those rules read them that deal out the machine's resources. Ephemeral ones get none. */
import { recordOf, recordsOf, textOf } from '../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../shared/kube/types.ts';

export interface Container {
  readonly name: string;
  /** `init` ends before the next one begins; a restartable one goes on, beside those that follow. */
  readonly kind: 'init' | 'restartable' | 'app';
  readonly requests: Readonly<Record<string, unknown>>;
  readonly limits: Readonly<Record<string, unknown>>;
}

/** In the order in which they start. */
export function containersOf(pod: KubeObject): Container[] {
  const read = (list: unknown, init: boolean): Container[] =>
    recordsOf(list).map((each) => {
      const resources = recordOf(each['resources']);
      const restartable = init && each['restartPolicy'] === 'Always';
      return {
        name: textOf(each['name']),
        kind: init ? (restartable ? 'restartable' : 'init') : 'app',
        requests: recordOf(resources['requests']),
        limits: recordOf(resources['limits']),
      };
    });
  return [...read(pod.spec?.['initContainers'], true), ...read(pod.spec?.['containers'], false)];
}
