/** What `explain` prints about a workload, beside its decisions: how many pods it has, and why others do not run. */
import type { DecisionAbout, WorkloadKind } from '../shared/decisions/decision-record.ts';
import type { KubeObject, KubePod } from '../shared/kinds/types.ts';

interface ExplainedKind {
  readonly kind: WorkloadKind;
  /** Path of its objects, without the namespace. */
  readonly group: string;
  readonly plural: string;
  /** The kind of the workloads that it owns. */
  readonly owns?: string;
}

/** By the word of the command line. */
export const EXPLAINED_KINDS: Readonly<Record<string, ExplainedKind>> = {
  deployment: { kind: 'Deployment', group: '/apis/apps/v1', plural: 'deployments', owns: 'replicaset' },
  replicaset: { kind: 'ReplicaSet', group: '/apis/apps/v1', plural: 'replicasets' },
  replicationcontroller: { kind: 'ReplicationController', group: '/api/v1', plural: 'replicationcontrollers' },
  daemonset: { kind: 'DaemonSet', group: '/apis/apps/v1', plural: 'daemonsets' },
  statefulset: { kind: 'StatefulSet', group: '/apis/apps/v1', plural: 'statefulsets' },
  job: { kind: 'Job', group: '/apis/batch/v1', plural: 'jobs' },
  cronjob: { kind: 'CronJob', group: '/apis/batch/v1', plural: 'cronjobs', owns: 'job' },
};

export const explainedKindOf = ({ kind }: DecisionAbout): ExplainedKind | undefined =>
  EXPLAINED_KINDS[kind.toLowerCase()];

export const pathOf = ({ group, plural }: ExplainedKind, namespace: string, name?: string): string =>
  `${group}/namespaces/${encodeURIComponent(namespace)}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;

const isOwnedBy =
  (uids: ReadonlySet<string>) =>
  ({ metadata }: KubeObject): boolean =>
    (metadata.ownerReferences ?? []).some(({ uid, controller }) => controller === true && uids.has(uid));

export const ownedBy = <T extends KubeObject>(objects: readonly T[], owners: readonly KubeObject[]): readonly T[] =>
  objects.filter(isOwnedBy(new Set(owners.flatMap(({ metadata }) => metadata.uid ?? []))));

/** Pods that are listed one by one. */
const LISTED_MAX = 10;

/** Lines below the title. */
export function* workloadState(workload: KubeObject, pods: readonly KubePod[]): Generator<string> {
  const running = pods.filter(isReady).length;
  yield `${wantedText(workload)}; ${pods.length} exist, ${running} are Ready`;
  for (const { type, status, reason, message } of conditionsOf(workload)) {
    yield `${type} is ${status}${reason === undefined ? '' : ` (${reason})`}${message ? `: ${message}` : ''}`;
  }
  const waiting = pods.filter((pod) => !isReady(pod));
  for (const pod of waiting.slice(0, LISTED_MAX)) yield `pod ${pod.metadata.name}: ${whyNotReady(pod)}`;
  if (waiting.length > LISTED_MAX) yield `and ${waiting.length - LISTED_MAX} pods more that are not Ready`;
}

function wantedText({ kind, spec = {}, status = {} }: KubeObject): string {
  const count = (value: unknown, absent: number): number => (typeof value === 'number' ? value : absent);
  if (kind === 'CronJob') return `schedule ${String(spec['schedule'])}`;
  if (kind === 'DaemonSet') return `${count(status['desiredNumberScheduled'], 0)} pods are wanted`;
  if (kind !== 'Job') return `${count(spec['replicas'], 1)} pods are wanted`;
  const completions = spec['completions'];
  const wanted =
    typeof completions === 'number'
      ? `${completions} ${completions === 1 ? 'success is' : 'successes are'} wanted`
      : 'one success is enough';
  return `${wanted}: ${count(status['succeeded'], 0)} succeeded, ${count(status['failed'], 0)} failed`;
}

interface ShownCondition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

const conditionsOf = ({ status }: KubeObject): readonly ShownCondition[] =>
  (status?.['conditions'] as readonly ShownCondition[] | undefined) ?? [];

const isReady = ({ status }: KubePod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;

/** Not bound and why; or what its containers wait for; or its phase. */
function whyNotReady({ metadata, spec, status }: KubePod): string {
  if (metadata.deletionTimestamp !== undefined) return `is being deleted since ${metadata.deletionTimestamp}`;
  const unscheduled = status?.conditions?.find(
    ({ type, status: value }) => type === 'PodScheduled' && value === 'False',
  );
  if (unscheduled !== undefined) return `is not bound: ${unscheduled.message ?? unscheduled.reason ?? ''}`;
  const waiting = status?.containerStatuses?.find(({ state }) => state?.waiting !== undefined);
  const why = waiting?.state?.waiting?.reason;
  const where = (spec?.nodeName ?? '') === '' ? 'not bound' : `on ${spec?.nodeName}`;
  return `${status?.phase ?? 'Pending'}, ${where}${why === undefined ? '' : `: container ${waiting?.name} waits: ${why}`}`;
}
