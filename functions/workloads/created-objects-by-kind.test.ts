import { describe, expect, it } from 'vitest';
import { servedWorkloads } from '../../test/support/served-workloads.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const IN_DEFAULT = 'namespaces/default';
const DEPLOYMENTS = `/apis/apps/v1/${IN_DEFAULT}/deployments`;
const REPLICA_SETS = `/apis/apps/v1/${IN_DEFAULT}/replicasets`;
const STATEFUL_SETS = `/apis/apps/v1/${IN_DEFAULT}/statefulsets`;
const REVISIONS = `/apis/apps/v1/${IN_DEFAULT}/controllerrevisions`;
const CRON_JOBS = `/apis/batch/v1/${IN_DEFAULT}/cronjobs`;
const JOBS = `/apis/batch/v1/${IN_DEFAULT}/jobs`;
const CLAIMS = `/api/v1/${IN_DEFAULT}/persistentvolumeclaims`;
const PODS = `/api/v1/${IN_DEFAULT}/pods`;
const EVENTS = `/api/v1/${IN_DEFAULT}/events`;

const TEMPLATE = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};
const SELECTED = { selector: { matchLabels: { app: 'web' } }, template: TEMPLATE };
const CLAIM_SPEC = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const deployment = { metadata: { name: 'web' }, spec: { replicas: 2, ...SELECTED } };
const statefulSet = {
  metadata: { name: 'web' },
  spec: {
    ...SELECTED,
    serviceName: 'web',
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: CLAIM_SPEC }],
  },
};
const cronJob = {
  metadata: { name: 'cron' },
  spec: {
    schedule: '* * * * *',
    jobTemplate: { spec: { template: { spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } } } },
  },
};

type Cluster = ReturnType<typeof servedWorkloads>;

const rulesFor = (apiGroups: string, resources: string, apiVersions = 'v1') => ({
  resourceRules: [
    { operations: ['CREATE'], apiGroups: [apiGroups], apiVersions: [apiVersions], resources: [resources] },
  ],
});

async function deny(cluster: Cluster, matchConstraints: object, expression: string): Promise<void> {
  await cluster.ok('POST', `${REGISTRATION}/validatingadmissionpolicies`, {
    metadata: { name: 'deny' },
    spec: { matchConstraints, validations: [{ expression, messageExpression: "'by ' + request.userInfo.username" }] },
  });
  await cluster.ok('POST', `${REGISTRATION}/validatingadmissionpolicybindings`, {
    metadata: { name: 'deny' },
    spec: { policyName: 'deny', validationActions: ['Deny'] },
  });
}
const permit = (cluster: Cluster) => cluster.ok('DELETE', `${REGISTRATION}/validatingadmissionpolicybindings/deny`);

async function mutate(cluster: Cluster, matchConstraints: object, expression: string): Promise<void> {
  await cluster.ok('POST', `${REGISTRATION}/mutatingadmissionpolicies`, {
    metadata: { name: 'change' },
    spec: {
      matchConstraints,
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
    },
  });
  await cluster.ok('POST', `${REGISTRATION}/mutatingadmissionpolicybindings`, {
    metadata: { name: 'change' },
    spec: { policyName: 'change' },
  });
}

const objectsOf = async (cluster: Cluster, path: string) => (await cluster.ok('GET', path)).items;
const namesOf = async (cluster: Cluster, path: string): Promise<string[]> =>
  (await objectsOf(cluster, path)).map(({ metadata }: { metadata: { name: string } }) => metadata.name);
const warnings = async (cluster: Cluster): Promise<string[]> =>
  (await objectsOf(cluster, EVENTS))
    .filter(({ type }: { type: string }) => type === 'Warning')
    .map((event: { involvedObject: { kind: string }; reason: string; message: string }) =>
      [event.involvedObject.kind, event.reason, event.message].join(' '),
    );

const refusedBy = (account: string) =>
  `ValidatingAdmissionPolicy 'deny' with binding 'deny' denied request: by system:serviceaccount:kube-system:${account}`;

describe.each(['policies', 'on demand'] as const)(
  'what controllers create passes the policies of the cluster: %s',
  (admission) => {
    it('a ReplicaSet: the Deployment has the condition of upstream, and tries again', async () => {
      const cluster = servedWorkloads({ admission });
      await deny(cluster, rulesFor('apps', 'replicasets'), "object.metadata.labels['app'] == 'other'");
      await cluster.ok('POST', DEPLOYMENTS, deployment);
      await cluster.settle();
      expect(await namesOf(cluster, REPLICA_SETS)).toEqual([]);
      const { conditions } = (await cluster.ok('GET', `${DEPLOYMENTS}/web`)).status;
      const message = expect.stringMatching(
        /^Failed to create new replica set "web-\w+": replicasets\.apps "web-\w+" is forbidden: ValidatingAdmission/,
      );
      expect(conditions).toContainEqual(
        expect.objectContaining({ type: 'Progressing', status: 'False', reason: 'ReplicaSetCreateError', message }),
      );
      expect(await warnings(cluster)).toEqual([
        expect.stringMatching(
          /^Deployment ReplicaSetCreateError Failed to create new replica set .*deployment-controller$/,
        ),
      ]);
      await permit(cluster);
      await cluster.tickAfter(11_000);
      expect(await namesOf(cluster, REPLICA_SETS)).toHaveLength(1);
      expect(await namesOf(cluster, PODS)).toHaveLength(2);
    });

    it('a ReplicaSet may be changed, but not what its Deployment compares: one more would follow without end', async () => {
      const cluster = servedWorkloads({ admission });
      const annotated = '[JSONPatch{op: "add", path: "/metadata/annotations/seen", value: "yes"}]';
      await mutate(cluster, rulesFor('apps', 'replicasets'), annotated);
      await cluster.ok('POST', DEPLOYMENTS, deployment);
      await cluster.settle();
      const [set] = await objectsOf(cluster, REPLICA_SETS);
      expect(set.metadata.annotations).toMatchObject({ seen: 'yes', 'deployment.kubernetes.io/revision': '1' });
      const other = servedWorkloads({ admission });
      const image = '[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror/i"}]';
      await mutate(other, rulesFor('apps', 'replicasets'), image);
      await other.ok('POST', DEPLOYMENTS, deployment);
      await other.settle();
      expect(await namesOf(other, REPLICA_SETS)).toEqual([]);
      expect(await warnings(other)).toEqual([
        expect.stringMatching(
          /ReplicaSet\.apps "web-\w+" is invalid: spec\.template: its owner needs it, and admission changed it$/,
        ),
      ]);
    });

    it('the Job of a CronJob: changed, as by a queue that starts it later', async () => {
      const cluster = servedWorkloads({ admission });
      await mutate(
        cluster,
        rulesFor('batch', 'jobs'),
        '[JSONPatch{op: "replace", path: "/spec/suspend", value: true}]',
      );
      await cluster.ok('POST', CRON_JOBS, cronJob);
      await cluster.settle();
      await cluster.tickAfter(61_000);
      const [job] = await objectsOf(cluster, JOBS);
      expect(job.spec.suspend).toBe(true);
      expect(await namesOf(cluster, PODS)).toEqual([]);
    });

    it('the Job of a CronJob: one that a change made invalid is refused, as is one that a policy denies', async () => {
      const cluster = servedWorkloads({ admission });
      const negative = '[JSONPatch{op: "replace", path: "/spec/parallelism", value: -1}]';
      await mutate(cluster, rulesFor('batch', 'jobs'), negative);
      await cluster.ok('POST', CRON_JOBS, cronJob);
      await cluster.settle();
      await cluster.tickAfter(61_000);
      expect(await namesOf(cluster, JOBS)).toEqual([]);
      const failure = 'CronJob FailedCreate Error creating job: ';
      expect(await warnings(cluster)).toEqual([
        expect.stringMatching(new RegExp(`^${failure}Job\\.batch "cron-\\d+" is invalid: spec\\.parallelism: .*-1`)),
      ]);
      await cluster.ok('DELETE', `${REGISTRATION}/mutatingadmissionpolicybindings/change`);
      await deny(cluster, rulesFor('batch', 'jobs'), 'false');
      await cluster.tickAfter(10_000);
      expect(await warnings(cluster)).toContainEqual(expect.stringContaining(refusedBy('cronjob-controller')));
      await permit(cluster);
      await cluster.tickAfter(11_000);
      expect(await namesOf(cluster, JOBS)).toHaveLength(1);
    });

    it('the claims of a StatefulSet: no pod is created without them', async () => {
      const cluster = servedWorkloads({ admission });
      const large = "quantity(object.spec.resources.requests['storage']).compareTo(quantity('512Mi')) <= 0";
      await deny(cluster, rulesFor('', 'persistentvolumeclaims'), large);
      await cluster.ok('POST', STATEFUL_SETS, statefulSet);
      await cluster.settle();
      expect([await namesOf(cluster, CLAIMS), await namesOf(cluster, PODS)]).toEqual([[], []]);
      expect(await warnings(cluster)).toContainEqual(
        `StatefulSet FailedCreate create Claim data-web-0 Pod web-0 in StatefulSet web failed error: ` +
          `persistentvolumeclaims "data-web-0" is forbidden: ${refusedBy('statefulset-controller')}`,
      );
      await permit(cluster);
      await cluster.tickAfter(6_000);
      expect([await namesOf(cluster, CLAIMS), await namesOf(cluster, PODS)]).toEqual([['data-web-0'], ['web-0']]);
    });

    it('the revisions of a StatefulSet', async () => {
      const cluster = servedWorkloads({ admission });
      await deny(cluster, rulesFor('apps', 'controllerrevisions'), 'object.revision != 1');
      await cluster.ok('POST', STATEFUL_SETS, statefulSet);
      await cluster.settle();
      expect([await namesOf(cluster, REVISIONS), await namesOf(cluster, PODS)]).toEqual([[], []]);
      expect(await warnings(cluster)).toEqual([
        expect.stringMatching(
          /^StatefulSet FailedCreate Error creating: controllerrevisions\.apps "web-\w+" is forbidden/,
        ),
      ]);
      await permit(cluster);
      await cluster.tickAfter(6_000);
      expect(await namesOf(cluster, PODS)).toEqual(['web-0']);
    });

    it('the claims of ephemeral volumes', async () => {
      const cluster = servedWorkloads({ admission });
      await deny(cluster, rulesFor('', 'persistentvolumeclaims'), 'false');
      const volume = { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: CLAIM_SPEC } } };
      await cluster.ok('POST', PODS, { metadata: { name: 'p' }, spec: { ...TEMPLATE.spec, volumes: [volume] } });
      await cluster.settle();
      expect(await warnings(cluster)).toEqual([
        `Pod FailedBinding ephemeral volume claim default/p-scratch: persistentvolumeclaims "p-scratch" is forbidden: ` +
          refusedBy('ephemeral-volume-controller'),
      ]);
      await permit(cluster);
      await cluster.tickAfter(6_000);
      expect(await namesOf(cluster, CLAIMS)).toEqual(['p-scratch']);
    });
  },
);

describe('a webhook that answers late', () => {
  it('delays what it is for, and each object is asked about once', async () => {
    const late: PromiseWithResolvers<void>[] = [];
    const asked: string[] = [];
    const cluster = servedWorkloads({
      admission: ({ descriptor }) => ({
        mutate: async (object) => {
          asked.push(`${descriptor.resource} ${object.metadata.name}`);
          const answer = Promise.withResolvers<void>();
          late.push(answer);
          if (descriptor.resource === 'persistentvolumeclaims') await answer.promise;
          return object;
        },
        admit: async () => {},
      }),
    });
    await cluster.ok('POST', STATEFUL_SETS, {
      ...statefulSet,
      spec: { ...statefulSet.spec, replicas: 2, podManagementPolicy: 'Parallel' },
    });
    await cluster.settle();
    expect([await namesOf(cluster, CLAIMS), await namesOf(cluster, PODS)]).toEqual([[], []]);
    for (let round = 0; round < 4; round += 1) {
      for (const { resolve } of late.splice(0)) resolve();
      await cluster.tickAfter(5_000);
    }
    expect(await namesOf(cluster, PODS)).toEqual(['web-0', 'web-1']);
    expect(asked.map((each) => each.replace(/web-\w{5,}/, 'web-HASH'))).toEqual([
      'controllerrevisions web-HASH',
      'persistentvolumeclaims data-web-0',
      'persistentvolumeclaims data-web-1',
      'pods web-0',
      'pods web-1',
    ]);
    expect(await warnings(cluster)).toEqual([]);
  });

  it('is asked once about a Job, though its selector has another uid at each sync', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let asked = 0;
    const cluster = servedWorkloads({
      admission: ({ descriptor }) => ({
        mutate: async (object) => {
          if (descriptor.resource !== 'jobs') return object;
          asked += 1;
          await promise;
          return object;
        },
        admit: async () => {},
      }),
    });
    await cluster.ok('POST', CRON_JOBS, cronJob);
    await cluster.settle();
    await cluster.tickAfter(61_000);
    expect([asked, await namesOf(cluster, JOBS)]).toEqual([1, []]);
    resolve();
    await cluster.tickAfter(5_000);
    const [{ metadata, spec }] = await objectsOf(cluster, JOBS);
    expect(spec.selector.matchLabels['batch.kubernetes.io/controller-uid']).toBe(metadata.uid);
    expect(asked).toBe(1);
  });
});

it.each([
  // The API has looked for policies already.
  ['policies', 0],
  ['on demand', 1],
] as const)('without policies the same is read and written, but for the look for policies: %s', async (kind, looks) => {
  const used = async (admission?: 'policies' | 'on demand') => {
    const units = { read: 0, write: 0 };
    const cluster = servedWorkloads({
      onConsumed: ({ readUnits, writeUnits }) => {
        units.read += readUnits;
        units.write += writeUnits;
      },
      ...(admission && { admission }),
    });
    await cluster.ok('POST', DEPLOYMENTS, deployment);
    await cluster.ok('POST', STATEFUL_SETS, statefulSet);
    await cluster.settle();
    return units;
  };
  const without = await used();
  expect(await used(kind)).toEqual({ ...without, read: without.read + looks });
});
