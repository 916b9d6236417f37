/** A StatefulSet, over the cluster of the workload controllers. Pods run on nodes of their own names. */

import type { KubeStatefulSet } from '../../functions/workloads/workload-types.ts';
import type { KubePod, PodPhase, StatefulSetSpec } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { workloadCluster } from './workload-cluster.ts';

export function statefulCluster() {
  const cluster = workloadCluster();
  const { change, list } = cluster;
  const stateful = {
    ...cluster,
    createStatefulSet: (spec: Partial<StatefulSetSpec> = {}) =>
      cluster.create('statefulsets', {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'web' },
        spec: {
          replicas: 3,
          serviceName: 'web',
          podManagementPolicy: 'OrderedReady',
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ name: 'c', image: 'v1' }] },
          },
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
          revisionHistoryLimit: 10,
          ...spec,
        },
      }),
    changeSpec: (next: Partial<StatefulSetSpec>) =>
      change('statefulsets', 'web', (set) => ({ ...set, spec: { ...set.spec, ...next } })),
    setImage: (image: string) =>
      change('statefulsets', 'web', (set: KubeStatefulSet) => ({
        ...set,
        spec: {
          ...set.spec,
          template: {
            ...set.spec?.template,
            spec: { ...set.spec?.template?.spec, containers: [{ name: 'c', image }] },
          },
        },
      })),
    async set(): Promise<KubeStatefulSet> {
      const [set] = await list<KubeStatefulSet>('statefulsets');
      if (set === undefined) throw new Error('no StatefulSet');
      return set;
    },
    /** Names of the pod objects, those being deleted included, in the order of creation. */
    async names(): Promise<readonly string[]> {
      const pods = await list<KubePod>('pods');
      return pods.map(({ metadata }) => metadata.name ?? '').sort();
    },
    async images(): Promise<Readonly<Record<string, string | undefined>>> {
      const pods = await list<KubePod>('pods');
      return Object.fromEntries(pods.map((pod) => [pod.metadata.name, pod.spec?.containers?.[0]?.image]));
    },
    /** Does what scheduler and kubelet do. */
    runPod: (name: string, more: { readonly phase?: PodPhase; readonly ready?: boolean } = {}) =>
      change('pods', name, (pod: KubePod) => ({
        ...pod,
        spec: { ...pod.spec, nodeName: `node-of-${name}` },
        status: {
          ...pod.status,
          phase: more.phase ?? 'Running',
          conditions: [
            {
              type: 'Ready',
              status: more.ready === false ? ('False' as const) : ('True' as const),
              lastTransitionTime: formatTime(cluster.now()),
            },
          ],
        },
      })),
    /** Until nothing changes: new pods run, deleted ones end, except those that `isStuck` names. */
    async settleRunning(isStuck: (name: string) => boolean = () => false) {
      for (let round = 0; round < 100; round += 1) {
        const batches = await cluster.settle();
        let changed = false;
        for (const pod of await list<KubePod>('pods')) {
          const name = pod.metadata.name ?? '';
          if (isStuck(name)) continue;
          if (pod.metadata.deletionTimestamp !== undefined) await cluster.remove('pods', name);
          else if (pod.status?.phase !== 'Running') await stateful.runPod(name);
          else continue;
          changed = true;
        }
        if (batches === 0 && !changed) return;
      }
      throw new Error('the pods do not settle');
    },
  };
  return stateful;
}

export type StatefulCluster = ReturnType<typeof statefulCluster>;
