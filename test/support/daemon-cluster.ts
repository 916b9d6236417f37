/** Nodes and a DaemonSet, over the cluster of the workload controllers. */

import { targetNodeOf } from '../../functions/workloads/daemonsets/placement.rule.ts';
import type { DaemonSetSpec, KubeDaemonSet, KubeObject, KubePod, PodSpec } from '../../shared/kinds/types.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { workloadCluster } from './workload-cluster.ts';

export const namesOf = (objects: readonly KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name ?? '');

export function daemonCluster(options: Parameters<typeof workloadCluster>[0] = {}) {
  const cluster = workloadCluster(options);
  const { change, list } = cluster;
  const createNode = (
    name: string,
    spec: { readonly taints?: Taint[]; readonly unschedulable?: boolean } = {},
    labels: Record<string, string> = {},
    capacity: Record<string, string> = { cpu: '4' },
  ) =>
    cluster.create('nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels },
      spec,
      status: { capacity, allocatable: capacity, conditions: [{ type: 'Ready', status: 'True' }] },
    });
  const setPod = (name: string, next: (pod: KubePod) => KubePod) => change('pods', name, next);
  const daemons = {
    ...cluster,
    createNode,
    async createNodes(count: number) {
      for (let index = 0; index < count; index += 1) await createNode(`n${index}`);
    },
    setTaints: (name: string, taints: Taint[]) =>
      change('nodes', name, (node) => ({ ...node, spec: { ...node.spec, taints } })),
    createDaemonSet: (spec: Partial<DaemonSetSpec> = {}, podSpec: PodSpec = {}, name = 'agent') =>
      cluster.create('daemonsets', {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata: { name },
        spec: {
          selector: { matchLabels: { app: name } },
          template: {
            metadata: { labels: { app: name } },
            spec: { containers: [{ name: 'c', image: 'v1' }], ...podSpec },
          },
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
          revisionHistoryLimit: 10,
          ...spec,
        },
      }),
    setImage: (image: string) =>
      change('daemonsets', 'agent', (set: KubeDaemonSet) => ({
        ...set,
        spec: {
          ...set.spec,
          template: {
            ...set.spec?.template,
            spec: { ...set.spec?.template?.spec, containers: [{ name: 'c', image }] },
          },
        },
      })),
    async set(): Promise<KubeDaemonSet> {
      const [set] = await list<KubeDaemonSet>('daemonsets');
      if (set === undefined) throw new Error('no DaemonSet');
      return set;
    },
    /** Nodes with the pods, not being deleted, that were made for them. */
    async targets(): Promise<ReadonlyMap<string, readonly KubePod[]>> {
      return Map.groupBy(await cluster.pods(), (pod) => targetNodeOf(pod) ?? '');
    },
    /** Does what scheduler and kubelet do: every pod is bound to its node, and Ready. */
    async runOnTargets() {
      for (const pod of await cluster.pods()) {
        if (pod.status?.phase === 'Running' || pod.status?.phase === 'Failed') continue;
        const ready = { type: 'Ready', status: 'True' as const, lastTransitionTime: formatTime(cluster.now()) };
        await setPod(pod.metadata.name ?? '', (each) => ({
          ...each,
          spec: { ...each.spec, nodeName: targetNodeOf(each) ?? '' },
          status: { ...each.status, phase: 'Running', conditions: [ready] },
        }));
      }
    },
    async settleRunning() {
      for (let round = 0; round < 100; round += 1) {
        const batches = await cluster.settle();
        await daemons.runOnTargets();
        if (batches === 0) return;
      }
    },
    /** Does what kubelets do: pods that are being deleted end at once. */
    async settleDeleted() {
      for (let round = 0; round < 100; round += 1) {
        await cluster.settle();
        const ending = (await list('pods')).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
        if (ending.length === 0) return;
        for (const name of namesOf(ending)) await cluster.remove('pods', name);
      }
      throw new Error('pods are deleted without end');
    },
    failPod: (name: string) =>
      setPod(name, (pod) => ({ ...pod, status: { ...pod.status, phase: 'Failed', conditions: [] } })),
    async failPods() {
      for (const name of namesOf(await cluster.pods())) await daemons.failPod(name);
    },
  };
  return daemons;
}

export type DaemonCluster = ReturnType<typeof daemonCluster>;
