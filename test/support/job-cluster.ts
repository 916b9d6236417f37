/** The cluster of workload-cluster.ts with Jobs as the API stores them, and pods that terminate. */

import { replay } from '../../cli/replay.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { jobs } from '../../shared/kinds/jobs/serve.ts';
import type { JobCondition, JobSpec, KubeJob, KubePod, PodPhase } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { type WorkloadCluster, workloadCluster } from './workload-cluster.ts';

export const TRACKING = 'batch.kubernetes.io/job-tracking';
const INDEX = 'batch.kubernetes.io/job-completion-index';

/** The acts of the decisions that are stored. @throws when the rule of one of them decides otherwise now */
export async function replayedActs({ tables, now }: WorkloadCluster): Promise<readonly string[]> {
  const { decisions } = await decisionStore(tables).list({ nowMs: now(), limit: 1_000 });
  for (const { name, record } of decisions) {
    const { same, checked, got } = replay(record);
    if (!same || !checked) throw new Error(`${name}: ${JSON.stringify(got)}`);
  }
  return decisions.map(({ record }) => record.act);
}

export type JobCluster = WorkloadCluster & JobActs;

interface JobActs {
  readonly createJob: (spec?: JobSpec, name?: string) => Promise<void>;
  readonly job: (name?: string) => Promise<KubeJob>;
  readonly conditions: (name?: string) => Promise<readonly string[]>;
  readonly condition: (type: string, name?: string) => Promise<JobCondition | undefined>;
  /** In the order of their creation. */
  readonly jobPods: () => Promise<readonly KubePod[]>;
  readonly tracked: () => Promise<number>;
  readonly indexes: () => Promise<readonly number[]>;
  /** The pod terminates with this phase; `exitCode` of its container. */
  readonly end: (pod: KubePod, phase: PodPhase, exitCode?: number) => Promise<void>;
  /** Does what a kubelet does when a deleted pod has terminated. */
  readonly confirmDeletions: () => Promise<void>;
}

/** A cluster with a Job that has its first pods running on a node. */
export async function startedJob(spec: JobSpec): Promise<JobCluster> {
  const cluster = jobCluster();
  await cluster.createJob(spec);
  await cluster.settle();
  await cluster.runPods();
  await cluster.settle();
  return cluster;
}

export function jobCluster(): JobCluster {
  const cluster = workloadCluster();
  const acts: JobActs = {
    async createJob(spec = {}, name = 'pi') {
      const metadata = {
        name,
        namespace: 'default',
        uid: `job-${name}`,
        generation: 1,
        creationTimestamp: formatTime(cluster.now()),
      };
      const template = { spec: { restartPolicy: 'Never' as const, containers: [{ name: 'c', image: 'v1' }] } };
      const given = { apiVersion: 'batch/v1', kind: 'Job', metadata, spec: { template, ...spec } };
      await cluster.create('jobs', jobs.prepareForCreate(given, { nowMs: cluster.now() }));
    },
    async job(name = 'pi') {
      return (await cluster.objects.get({ resource: 'jobs', namespace: 'default', name })) as KubeJob;
    },
    async conditions(name) {
      const { status } = await acts.job(name);
      return (status?.conditions ?? []).map((each) => `${each.type} ${each.status} ${each.reason}`);
    },
    async condition(type, name) {
      return (await acts.job(name)).status?.conditions?.find((each) => each.type === type);
    },
    jobPods: () => cluster.list<KubePod>('pods'),
    async tracked() {
      return (await acts.jobPods()).filter(({ metadata }) => (metadata.finalizers ?? []).includes(TRACKING)).length;
    },
    async indexes() {
      const active = (await cluster.pods()).filter(
        ({ status }) => !['Succeeded', 'Failed'].includes(status?.phase ?? ''),
      );
      return active.map(({ metadata }) => Number(metadata.annotations?.[INDEX])).sort((one, other) => one - other);
    },
    async end(pod, phase, exitCode = phase === 'Succeeded' ? 0 : 1) {
      const finishedAt = formatTime(cluster.now());
      await cluster.change('pods', pod.metadata.name ?? '', (current) => ({
        ...current,
        spec: { nodeName: 'n1', ...current.spec },
        status: {
          ...current.status,
          phase,
          containerStatuses: [{ name: 'c', restartCount: 0, state: { terminated: { exitCode, finishedAt } } }],
        },
      }));
    },
    async confirmDeletions() {
      for (const pod of await acts.jobPods()) {
        if (pod.metadata.deletionTimestamp === undefined) continue;
        const name = pod.metadata.name ?? '';
        if ((pod.metadata.finalizers ?? []).length === 0) await cluster.remove('pods', name);
        else {
          await cluster.change('pods', name, (current) => ({
            ...current,
            metadata: { ...current.metadata, deletionGracePeriodSeconds: 0 },
          }));
        }
      }
      await cluster.settle();
    },
  };
  return Object.assign(cluster, acts);
}
