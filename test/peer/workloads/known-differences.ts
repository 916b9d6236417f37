/** Differences that are no faults, each with its reason. Most come from the releases: 1.20 there, 1.36 here. */
export interface KnownDifference {
  /** `Kind/name`. */
  readonly object: RegExp;
  readonly path: RegExp;
  /** Values of upstream and of ours for which it is known; absent: all. */
  readonly upstream?: RegExp;
  readonly ours?: RegExp;
  readonly reason: string;
}

const ABSENT = /^undefined$/;
/** A field or value that later releases added. */
const added = (object: RegExp, path: RegExp, since: string): KnownDifference => ({
  object,
  path,
  upstream: ABSENT,
  reason: `since ${since}`,
});

const JOB = /^Job\//;
const POD = /^Pod\//;
const STATEFUL = /^StatefulSet\//;
const CRON = /^CronJob\//;
const SERVICE = /^Service\//;

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  added(POD, /^status\.hostIPs/, '1.28, beside hostIP'),
  added(POD, /^metadata\.labels\.apps\.kubernetes\.io\/pod-index$/, '1.28'),
  added(POD, /^metadata\.labels\.batch\.kubernetes\.io\//, '1.27'),
  added(POD, /^metadata\.finalizers\.0$/, '1.23: a pod is counted once'),
  added(POD, /^status\.conditions\.DisruptionTarget\./, '1.26'),
  {
    object: POD,
    path: /^spec\.tolerations/,
    upstream: ABSENT,
    reason: 'pods of DaemonSets tolerate our taints of flapping nodes and of planned silence',
  },
  added(/^DaemonSet\//, /rollingUpdate\.maxSurge$/, '1.22'),
  added(STATEFUL, /^spec\.persistentVolumeClaimRetentionPolicy\./, '1.27'),
  added(STATEFUL, /^status\.availableReplicas$/, '1.22'),
  added(JOB, /^metadata\.(generation|labels\.batch\.kubernetes\.io\/.*)$/, '1.27'),
  added(JOB, /^spec\.(completionMode|suspend|podReplacementPolicy|manualSelector)$/, '1.21 to 1.30, with its default'),
  added(JOB, /^spec\.(selector\.matchLabels|template\.metadata\.labels)\.batch\.kubernetes\.io\//, '1.27'),
  {
    object: JOB,
    path: /^spec\.selector\.matchLabels\.controller-uid$/,
    ours: ABSENT,
    reason: 'the selector has the label batch.kubernetes.io/controller-uid since 1.27',
  },
  added(JOB, /^status\.(ready|terminating|uncountedTerminatedPods)$/, '1.24 to 1.28'),
  added(JOB, /^status\.conditions\.(SuccessCriteriaMet|FailureTarget)\./, '1.31'),
  added(JOB, /^status\.conditions\.Complete\.(reason|message)$/, '1.31'),
  added(JOB, /^metadata\.annotations\.batch\.kubernetes\.io\/cronjob-scheduled-timestamp$/, '1.28'),
  {
    object: /^Job\/long$/,
    path: /^status\.failed$/,
    upstream: ABSENT,
    reason: '1.20 counts pods that exist: a sync that is repeated after a conflict does not count those it deleted',
  },
  added(CRON, /^(metadata\.generation|spec\.jobTemplate\.spec\.suspend)$/, '1.21'),
  {
    object: CRON,
    path: /^status\.active\.\d+\.resourceVersion$/,
    ours: ABSENT,
    reason: 'one transaction creates the Job and writes this status, before the version of the Job is known',
  },
  {
    object: /^(Job|Pod)\/by-hand|^kubectl create job by-hand/,
    path: /^(exit code)?$/,
    reason: 'kubectl 1.32 reads CronJobs of batch/v1, which 1.20 does not serve',
  },
  {
    object: /^kubectl (autoscale|expose) /,
    path: /^output$/,
    ours: /Warning: /,
    reason: 'a warning says that nothing acts on the object',
  },
  added(/^PodDisruptionBudget\//, /^status\.conditions\.DisruptionAllowed\./, '1.22'),
  added(SERVICE, /^spec\.(ipFamil.*|internalTrafficPolicy)/, '1.22 and 1.23, with its default'),
];
