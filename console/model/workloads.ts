/** Workloads of all kinds that act, with the numbers that kubectl prints. */
import type { KubeObject } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import type { Column } from './rows.ts';

export const WORKLOADS = [
  ['deployment', '/apis/apps/v1/deployments'],
  ['statefulset', '/apis/apps/v1/statefulsets'],
  ['daemonset', '/apis/apps/v1/daemonsets'],
  ['replicaset', '/apis/apps/v1/replicasets'],
  ['replicationcontroller', '/api/v1/replicationcontrollers'],
  ['job', '/apis/batch/v1/jobs'],
  ['cronjob', '/apis/batch/v1/cronjobs'],
] as const;

export type WorkloadKind = (typeof WORKLOADS)[number][0];

export interface WorkloadRow {
  readonly kind: WorkloadKind;
  readonly namespace: string;
  readonly name: string;
  /** "2/3"; the schedule of a CronJob. */
  readonly ready: string;
  readonly isShort: boolean;
  readonly createdAtMs: number;
  /** Condition that is not as it should be; '' without one. */
  readonly why: string;
}

interface Workload extends KubeObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly completions?: number;
    readonly schedule?: string;
    readonly suspend?: boolean;
  };
  readonly status?: {
    readonly readyReplicas?: number;
    readonly numberReady?: number;
    readonly desiredNumberScheduled?: number;
    readonly succeeded?: number;
    readonly active?: number | readonly unknown[];
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
      readonly reason?: string;
    }[];
  };
}

export function workloadRowOf(kind: WorkloadKind, { metadata, spec = {}, status = {} }: Workload): WorkloadRow {
  const [up, of] = countsOf(kind, spec, status);
  return {
    kind,
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    ready: kind === 'cronjob' ? `${spec.schedule ?? ''}${spec.suspend === true ? ', suspended' : ''}` : `${up}/${of}`,
    isShort: kind !== 'cronjob' && up < of,
    createdAtMs: parseTimeMs(metadata.creationTimestamp) ?? 0,
    why: whyOf(status.conditions ?? []),
  };
}

function countsOf(
  kind: WorkloadKind,
  spec: NonNullable<Workload['spec']>,
  status: NonNullable<Workload['status']>,
): readonly [up: number, of: number] {
  if (kind === 'daemonset') return [status.numberReady ?? 0, status.desiredNumberScheduled ?? 0];
  if (kind === 'job') return [status.succeeded ?? 0, spec.completions ?? 1];
  return [status.readyReplicas ?? 0, spec.replicas ?? 1];
}

/** Conditions that state trouble when they are True; the others when they are False. */
const BAD_TYPES: ReadonlySet<string> = new Set(['ReplicaFailure', 'Failed']);

function whyOf(conditions: NonNullable<NonNullable<Workload['status']>['conditions']>): string {
  const bad = conditions.find(({ type, status }) =>
    BAD_TYPES.has(type) ? status === 'True' : ['Available', 'Progressing'].includes(type) && status === 'False',
  );
  return bad?.message ?? bad?.reason ?? '';
}

/** An old ReplicaSet of a Deployment is empty on purpose. */
export const isShown = ({ kind, ready }: WorkloadRow): boolean => kind !== 'replicaset' || ready !== '0/0';

export const WORKLOAD_COLUMNS: readonly Column<WorkloadRow>[] = [
  { key: 'name', title: 'Name', by: ({ namespace, name }) => `${namespace}/${name}` },
  { key: 'kind', title: 'Kind', by: ({ kind }) => kind },
  { key: 'ready', title: 'Ready', by: ({ ready }) => ready },
  { key: 'age', title: 'Age', by: ({ createdAtMs }) => -createdAtMs },
  { key: 'why', title: 'Why', by: ({ why }) => why },
];
