/** The steps that both control planes get: kubectl commands, manifests, and machines that fall silent. */
export interface Step {
  /** Arguments of kubectl; the namespace is added. */
  readonly kubectl?: readonly string[];
  /** Applied from standard input: `kubectl apply -f -`. */
  readonly apply?: readonly object[];
  /** The machine of the first pod of a workload falls silent, or all machines continue. */
  readonly machines?: { readonly silenceThatOf: string } | 'restore';
  /** Output that depends on the time of the request is not compared; its last line is. */
  readonly compareOutput?: 'last line' | 'none';
  /** True when the step has had its effect; otherwise the first equal state that lasts. */
  readonly until?: (objects: Readonly<Record<string, unknown>>) => boolean;
  /** How long the state has to become equal. Seconds. */
  readonly withinSeconds?: number;
}

const words = (command: string): readonly string[] => command.split(' ');
const run = (command: string, rest: Omit<Step, 'kubectl'> = {}): Step => ({ kubectl: words(command), ...rest });
const apply = (...objects: readonly object[]): Step => ({ apply: objects });
const status = (of: string): Step => run(`rollout status ${of} --timeout=60s`, { compareOutput: 'last line' });

const podOf = (app: string, image: string, more: object = {}) => ({
  metadata: { labels: { app } },
  spec: {
    terminationGracePeriodSeconds: 5,
    containers: [{ name: 'main', image: `registry.invalid/${image}` }],
    ...more,
  },
});
const selectorOf = (app: string) => ({ matchLabels: { app } });

const deployment = (name: string, image: string, spec: object, pod: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: { selector: selectorOf(name), template: podOf(name, image, pod), ...spec },
});
const replicaSet = (name: string, spec: object) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name },
  spec: { selector: selectorOf(name), template: podOf(name, 'app:1'), ...spec },
});
const replicationController = {
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'older' },
  spec: { replicas: 2, selector: { app: 'older' }, template: podOf('older', 'app:1') },
};
const daemonSet = (image: string) => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'agent' },
  spec: { selector: selectorOf('agent'), template: podOf('agent', image) },
});
const statefulSet = (image: string, spec: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db' },
  spec: { replicas: 3, serviceName: 'db', selector: selectorOf('db'), template: podOf('db', image), ...spec },
});
const job = (name: string, image: string, spec: object) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name },
  spec: { template: podOf(name, image, { restartPolicy: 'Never' }), ...spec },
});
/** `CRON` and `BUDGET` stand for the newest version of the group that the server has. */
const cronJob = {
  apiVersion: 'CRON',
  kind: 'CronJob',
  metadata: { name: 'nightly' },
  spec: {
    schedule: '* * * * *',
    concurrencyPolicy: 'Forbid',
    jobTemplate: { spec: { template: podOf('nightly', 'job:runs', { restartPolicy: 'Never' }) } },
  },
};
const budget = {
  apiVersion: 'BUDGET',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web' },
  spec: { minAvailable: 2, selector: selectorOf('web') },
};
const quota = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'few' },
  spec: { hard: { pods: '2' } },
};
const isolated = {
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { app: 'apart' } }, topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  },
};

const besideApart = {
  affinity: {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { app: 'apart' } }, topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  },
};

const hasCondition = (object: unknown, type: string, reason: string): boolean => {
  const { status } = (object ?? {}) as { status?: { conditions?: Record<string, { reason?: string }> } };
  return status?.conditions?.[type]?.reason === reason;
};

const replicasOf = (object: unknown): number | undefined =>
  (object as { status?: { replicas?: number } } | undefined)?.status?.replicas;

export const SECTIONS: Readonly<Record<string, readonly Step[]>> = {
  deployments: [
    run('create deployment web --image=registry.invalid/app:1 --replicas=3'),
    status('deployment/web'),
    run('scale deployment/web --replicas=5'),
    run('scale deployment/web --replicas=7 --current-replicas=99'),
    run('set image deployment/web app=registry.invalid/app:2'),
    status('deployment/web'),
    run('annotate deployment/web kubernetes.io/change-cause=second'),
    run('rollout history deployment/web'),
    run('rollout history deployment/web --revision=2'),
    run('rollout undo deployment/web'),
    status('deployment/web'),
    run('rollout undo deployment/web --to-revision=77'),
    run('rollout pause deployment/web'),
    run('set image deployment/web app=registry.invalid/app:3'),
    run('scale deployment/web --replicas=4'),
    run('rollout undo deployment/web'),
    run('rollout restart deployment/web'),
    run('rollout resume deployment/web'),
    status('deployment/web'),
    run('rollout undo deployment/web --to-revision=2'),
    run('rollout restart deployment/web'),
    run('set env deployment/web COLOUR=blue'),
    run('set resources deployment/web --limits=cpu=100m --requests=cpu=50m'),
    status('deployment/web'),
    run('rollout history deployment/web'),
    run('get deployments,replicasets -o wide', { compareOutput: 'none' }),
    run('delete deployment/web'),
  ],
  'broken rollouts': [
    run('create deployment web --image=registry.invalid/app:1 --replicas=4'),
    status('deployment/web'),
    run('set image deployment/web app=registry.invalid/app:2'),
    status('deployment/web'),
    run('patch deployment/web -p {"spec":{"progressDeadlineSeconds":8,"replicas":10}}'),
    status('deployment/web'),
    run('set image deployment/web app=registry.invalid/app:broken', {
      until: (objects) => hasCondition(objects['Deployment/web'], 'Progressing', 'ProgressDeadlineExceeded'),
    }),
    run('rollout status deployment/web --timeout=60s', { compareOutput: 'last line' }),
    run('scale deployment/web --replicas=20'),
    run('scale deployment/web --replicas=6'),
    run('rollout undo deployment/web'),
    status('deployment/web'),
    run('patch deployment/web --type=merge -p {"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'),
    run('set image deployment/web app=registry.invalid/app:5'),
    status('deployment/web'),
    run('patch deployment/web -p {"spec":{"revisionHistoryLimit":1}}'),
    run('autoscale deployment/web --min=2 --max=9 --cpu-percent=60'),
    run('expose deployment/web --port=80'),
    run('delete hpa/web service/web deployment/web'),
  ],
  'cascades of deletion': [
    run('create deployment web --image=registry.invalid/app:4 --replicas=2'),
    run('set image deployment/web app=registry.invalid/app:5'),
    status('deployment/web'),
    run('delete deployment/web --cascade=orphan'),
    run('create deployment web --image=registry.invalid/app:5 --replicas=3'),
    status('deployment/web'),
    run('delete replicasets -l app=web --cascade=orphan'),
    status('deployment/web'),
    run('delete deployment/web --cascade=foreground', { withinSeconds: 60 }),
    {
      apply: [
        deployment('web', 'app:1', {
          replicas: 4,
          strategy: { rollingUpdate: { maxSurge: '50%', maxUnavailable: 0 } },
        }),
      ],
    },
    apply(deployment('web', 'app:2', { replicas: 4, minReadySeconds: 2 })),
    status('deployment/web'),
    run('delete deployment/web'),
  ],
  'replica sets': [
    apply(replicaSet('set', { replicas: 3 }), replicationController),
    run('label pods -l app=set app=stray --overwrite'),
    run('label pods -l app=stray app=set --overwrite'),
    run('scale rs/set rc/older --replicas=1'),
    run('delete pods -l app=set --wait=false'),
    run('delete rs/set rc/older --cascade=orphan'),
    apply(replicaSet('set', { replicas: 1 }), replicationController),
    run('delete rs/set rc/older'),
  ],
  'daemon sets': [
    apply(daemonSet('app:1')),
    status('daemonset/agent'),
    apply(daemonSet('app:2')),
    status('daemonset/agent'),
    run('rollout history daemonset/agent'),
    run('rollout undo daemonset/agent'),
    status('daemonset/agent'),
    run('taint nodes peer-node-1 peer=no:NoSchedule'),
    run('taint nodes peer-node-2 peer=no:NoExecute'),
    run('taint nodes peer-node-1 peer-node-2 peer-'),
    run('cordon peer-node-1'),
    run('uncordon peer-node-1'),
    run('label nodes peer-node-0 colour=blue'),
    run('patch daemonset/agent -p {"spec":{"template":{"spec":{"nodeSelector":{"colour":"blue"}}}}}'),
    run('label nodes peer-node-0 colour-'),
    run('patch daemonset/agent --type=merge -p {"spec":{"template":{"spec":{"nodeSelector":null}}}}'),
    run('set image daemonset/agent main=registry.invalid/app:broken'),
    run('rollout undo daemonset/agent'),
    status('daemonset/agent'),
    run('delete pods -l app=agent --wait=false'),
    run('delete daemonset/agent --cascade=orphan'),
    apply(daemonSet('app:1')),
    run('delete daemonset/agent'),
  ],
  'stateful sets': [
    apply(statefulSet('app:1')),
    status('statefulset/db'),
    run('scale statefulset/db --replicas=4'),
    apply(statefulSet('app:2')),
    status('statefulset/db'),
    run('rollout history statefulset/db'),
    run('rollout undo statefulset/db'),
    status('statefulset/db'),
    run('patch statefulset/db -p {"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}'),
    run('set image statefulset/db main=registry.invalid/app:3'),
    run('delete pod/db-0 --wait=false'),
    run('patch statefulset/db -p {"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'),
    status('statefulset/db'),
    run('rollout restart statefulset/db'),
    status('statefulset/db'),
    run('set image statefulset/db main=registry.invalid/app:broken'),
    run('rollout undo statefulset/db'),
    run('delete pod/db-2 --wait=false'),
    status('statefulset/db'),
    run('delete statefulset/db --cascade=orphan'),
    apply(statefulSet('app:3')),
    run('scale statefulset/db --replicas=0'),
    run('delete statefulset/db'),
    apply(statefulSet('app:1', { podManagementPolicy: 'Parallel' })),
    run('delete statefulset/db'),
  ],
  jobs: [
    apply(job('five', 'job:succeeds', { completions: 5, parallelism: 2 })),
    run('wait job/five --for=condition=Complete --timeout=60s'),
    // The releases wait for different times after a failure.
    {
      apply: [job('bad', 'job:fails', { backoffLimit: 1 })],
      until: (objects) => hasCondition(objects['Job/bad'], 'Failed', 'BackoffLimitExceeded'),
      withinSeconds: 90,
    },
    run('wait job/bad --for=condition=Failed --timeout=90s'),
    apply(job('long', 'job:runs', { completions: 4, parallelism: 2 })),
    run('patch job/long -p {"spec":{"parallelism":3}}'),
    run('patch job/long -p {"spec":{"parallelism":1}}'),
    run('patch job/long -p {"spec":{"activeDeadlineSeconds":1}}', {
      until: (objects) => hasCondition(objects['Job/long'], 'Failed', 'DeadlineExceeded'),
    }),
    apply(job('queue', 'job:succeeds', { parallelism: 2 })),
    run('delete job/five --cascade=orphan'),
    run('delete pods -l job-name=five'),
    run('delete jobs --all --cascade=foreground'),
    apply(job('brief', 'job:succeeds', { ttlSecondsAfterFinished: 1 })),
    run('wait job/brief --for=delete --timeout=60s', { compareOutput: 'none' }),
  ],
  'cron jobs': [
    {
      apply: [cronJob],
      until: (objects) => Object.keys(objects).some((key) => /^Pod\/nightly/.test(key)),
      withinSeconds: 90,
    },
    run('patch cronjob/nightly -p {"spec":{"suspend":true}}'),
    run('create job by-hand --from=cronjob/nightly', { compareOutput: 'none' }),
    run('delete cronjob/nightly'),
    run('delete jobs --all'),
  ],
  'budgets and drains': [
    apply(deployment('web', 'app:1', { replicas: 3 }), budget),
    run('scale deployment/web --replicas=4'),
    run('drain peer-node-0 peer-node-1 --ignore-daemonsets --force --timeout=60s', { compareOutput: 'none' }),
    run('uncordon peer-node-0 peer-node-1'),
    run('patch pdb/web -p {"spec":{"minAvailable":"50%"}}'),
    run('delete pdb/web deployment/web'),
    apply(quota),
    apply(replicaSet('many', { replicas: 4 })),
    // Upstream repeats after milliseconds at first, Nodekeeper after a minute.
    run('delete quota/few', { until: (objects) => replicasOf(objects['ReplicaSet/many']) === 4, withinSeconds: 120 }),
    run('scale rs/many --replicas=5'),
    run('delete rs/many'),
  ],
  'a dead node': [
    apply(deployment('apart', 'app:1', { replicas: 2 }, isolated), daemonSet('app:1')),
    status('deployment/apart'),
    apply(statefulSet('app:1', { replicas: 1, template: podOf('db', 'app:1', besideApart) })),
    status('statefulset/db'),
    { machines: { silenceThatOf: 'db' }, withinSeconds: 120, until: isEvicted },
    { machines: 'restore', withinSeconds: 90 },
    status('statefulset/db'),
    run('delete deployment/apart daemonset/agent statefulset/db'),
  ],
};

/** The pod of the StatefulSet is being deleted on its silent machine. */
function isEvicted(objects: Readonly<Record<string, unknown>>): boolean {
  const pod = objects['Pod/db-0'] as { metadata?: { deletionTimestamp?: string } } | undefined;
  return pod?.metadata?.deletionTimestamp !== undefined;
}
