import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { servedWorkloads } from '../../test/support/served-workloads.ts';

const DEFAULT = '/api/v1/namespaces/default';
const QUOTAS = `${DEFAULT}/resourcequotas`;

const pod = (name: string, spec: object = {}, resources: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i', resources }], ...spec },
});

async function withQuota(hard: Record<string, string>, more: object = {}, options = {}) {
  const cluster = servedWorkloads(options);
  await cluster.ok('POST', QUOTAS, { metadata: { name: 'q' }, spec: { hard, ...more } });
  await cluster.settle();
  // The first tick sweeps, and would hide what a record or a due time misses.
  await cluster.tickAfter(5_000);
  const used = async () => (await cluster.ok('GET', `${QUOTAS}/q`)).status.used;
  const create = (kind: string, object: unknown) => cluster.api.send('POST', `${DEFAULT}/${kind}`, { body: object });
  return { ...cluster, used, create };
}

describe('the Jobs of a CronJob', () => {
  const BATCH = '/apis/batch/v1/namespaces/default';

  it('are charged, and wait while the quota does not permit one more', async () => {
    const { ok, used, tickAfter } = await withQuota({ 'count/jobs.batch': '1' });
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } };
    await ok('POST', `${BATCH}/cronjobs`, {
      metadata: { name: 'often' },
      spec: { schedule: '* * * * *', jobTemplate: { spec: { suspend: true, template } } },
    });
    const jobs = async (): Promise<readonly { metadata: { name: string } }[]> =>
      (await ok('GET', `${BATCH}/jobs`)).items;
    await tickAfter(60_000);
    expect(await jobs()).toHaveLength(1);
    expect(await used()).toEqual({ 'count/jobs.batch': '1' });
    await tickAfter(60_000);
    expect(await jobs()).toHaveLength(1);
    const { items } = await ok('GET', `${DEFAULT}/events`);
    expect(items.map(({ message }: { message: string }) => message)).toContainEqual(
      expect.stringMatching(
        /^Error creating job: jobs\.batch "often-\d+" is forbidden: exceeded quota: q, requested: count\/jobs\.batch=1, used: count\/jobs\.batch=1, limited: count\/jobs\.batch=1$/,
      ),
    );
    const [first] = await jobs();
    await ok('DELETE', `${BATCH}/jobs/${first?.metadata.name}?propagationPolicy=Background`);
    await tickAfter(61_000);
    await tickAfter(61_000);
    expect(await jobs()).toHaveLength(1);
    expect((await jobs())[0]?.metadata.name).not.toBe(first?.metadata.name);
    expect(await used()).toEqual({ 'count/jobs.batch': '1' });
  });
});

describe('what controllers create besides pods', () => {
  const APPS = '/apis/apps/v1/namespaces/default';
  const app = (image: string, more: object = {}) => ({
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'c', image }], tolerations: [{ operator: 'Exists' }] },
      },
      ...more,
    },
  });

  it('is charged: a second ReplicaSet of a Deployment waits, and its condition says why', async () => {
    const { ok, used, settle, tickAfter } = await withQuota({ 'count/replicasets.apps': '1' });
    await ok('POST', `${APPS}/deployments`, app('i:1'));
    await settle();
    expect(await used()).toEqual({ 'count/replicasets.apps': '1' });
    const sets = async (): Promise<readonly unknown[]> => (await ok('GET', `${APPS}/replicasets`)).items;
    const deployment = await ok('GET', `${APPS}/deployments/web`);
    deployment.spec.template.spec.containers[0].image = 'i:2';
    await ok('PUT', `${APPS}/deployments/web`, deployment);
    await settle();
    expect(await sets()).toHaveLength(1);
    const why =
      /^Failed to create new replica set "web-\w+": replicasets\.apps "web-\w+" is forbidden: exceeded quota: q, requested: count\/replicasets\.apps=1, used: count\/replicasets\.apps=1, limited: count\/replicasets\.apps=1$/;
    const message = expect.stringMatching(why);
    expect((await ok('GET', `${APPS}/deployments/web`)).status.conditions).toContainEqual(
      expect.objectContaining({ type: 'Progressing', status: 'False', reason: 'ReplicaSetCreateError', message }),
    );
    const { items: events } = await ok('GET', `${DEFAULT}/events`);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'Warning', reason: 'ReplicaSetCreateError', message }),
    );
    await ok('DELETE', `${QUOTAS}/q`);
    await tickAfter(61_000);
    expect(await sets()).toHaveLength(2);
  });

  it.each(['daemonsets', 'statefulsets'])('is charged: %s get no pods without their revision', async (resource) => {
    const { ok, used, settle, tickAfter } = await withQuota({ 'count/controllerrevisions.apps': '0' });
    await ok('POST', '/api/v1/nodes', { metadata: { name: 'n1' } });
    await ok('POST', `${APPS}/${resource}`, app('i:1', resource === 'statefulsets' ? { serviceName: 'web' } : {}));
    await settle();
    const { items: events } = await ok('GET', `${DEFAULT}/events`);
    expect(events.map(({ reason }: { reason: string }) => reason)).toEqual(['FailedCreate']);
    expect(events[0].message).toMatch(
      /^Error creating: controllerrevisions\.apps "web-\w+" is forbidden: exceeded quota: q/,
    );
    expect((await ok('GET', `${DEFAULT}/pods`)).items).toEqual([]);
    const quota = await ok('GET', `${QUOTAS}/q`);
    await ok('PUT', `${QUOTAS}/q`, { ...quota, spec: { hard: { 'count/controllerrevisions.apps': '1' } } });
    await settle();
    await tickAfter(61_000);
    expect(await used()).toEqual({ 'count/controllerrevisions.apps': '1' });
    expect((await ok('GET', `${DEFAULT}/pods`)).items).toHaveLength(1);
  });
});

describe('the use of a quota', () => {
  it('is counted when the quota is created and when its limits change', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', `${DEFAULT}/pods`, pod('a', {}, { requests: { cpu: '250m' }, limits: { cpu: '1' } }));
    await cluster.ok('POST', `${DEFAULT}/services`, { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    await cluster.ok('POST', QUOTAS, {
      metadata: { name: 'q' },
      spec: { hard: { pods: '5', 'requests.cpu': '1', cpu: '1', 'limits.cpu': '2', services: '3', 'count/pods': '5' } },
    });
    await cluster.settle();
    const quota = await cluster.ok('GET', `${QUOTAS}/q`);
    expect(quota.status.used).toEqual({
      pods: '1',
      'requests.cpu': '250m',
      cpu: '250m',
      'limits.cpu': '1',
      services: '1',
      'count/pods': '1',
    });
    await cluster.ok('PUT', `${QUOTAS}/q`, { ...quota, spec: { hard: { pods: '7', secrets: '1' } } });
    await cluster.settle();
    expect((await cluster.ok('GET', `${QUOTAS}/q`)).status).toEqual({
      hard: { pods: '7', secrets: '1' },
      used: { pods: '1', secrets: '0' },
    });
  });

  it('rises with a new object at once, and falls when it is removed or a pod terminates', async () => {
    const { create, used, ok, settle } = await withQuota({ pods: '3', 'count/pods': '3', configmaps: '9' });
    await create('pods', pod('a'));
    await create('pods', pod('b'));
    expect(await used()).toMatchObject({ pods: '2', 'count/pods': '2' });
    const before = Number((await used()).configmaps);
    await create('configmaps', { metadata: { name: 'c' } });
    expect((await used()).configmaps).toBe(String(before + 1));
    await ok('DELETE', `${DEFAULT}/configmaps/c`);
    await ok('DELETE', `${DEFAULT}/pods/a`);
    const running = await ok('GET', `${DEFAULT}/pods/b`);
    await ok('PUT', `${DEFAULT}/pods/b/status`, { ...running, status: { phase: 'Succeeded' } });
    await settle();
    // With the certificates of the API, which no request has created.
    const { items } = await ok('GET', `${DEFAULT}/configmaps`);
    expect(items.map(({ metadata }: KubeObject) => metadata.name)).toEqual(['kube-root-ca.crt']);
    expect(await used()).toEqual({ pods: '0', 'count/pods': '1', configmaps: '1' });
  });

  it('leaves out a pod after its grace period, because its node may have failed', async () => {
    const { create, used, ok, settle, tickAfter } = await withQuota({ pods: '3' });
    await create('pods', pod('a', { nodeName: 'n', terminationGracePeriodSeconds: 30 }));
    await ok('DELETE', `${DEFAULT}/pods/a`);
    await settle();
    expect(await used()).toEqual({ pods: '1' });
    await tickAfter(62_000);
    expect(await used()).toEqual({ pods: '0' });
  });

  it('never exceeds the limit when many objects are created at once', async () => {
    /** All requests read the quota before the first of them writes it. */
    const apiStore = (items: ItemStore): ItemStore => ({
      ...items,
      async query(asked) {
        const page = await items.query(asked);
        if (asked.pk.includes('resourcequotas')) await turn();
        return page;
      },
    });
    const { create, used } = await withQuota({ pods: '5' }, {}, { apiStore });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => create('pods', pod(`p${index}`))));
    expect(answers.filter(({ code }) => code === 201)).toHaveLength(5);
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set([201, 403]));
    expect(await used()).toEqual({ pods: '5' });
  });
});

describe('a quota refuses', () => {
  const why = (answer: { body: { message: string } }) => answer.body.message;

  it('an object above its limit, with what was requested, used and limited', async () => {
    const { create, used } = await withQuota({ pods: '1', 'requests.memory': '1Gi', secrets: '0' });
    const small = pod('a', {}, { requests: { memory: '600Mi' } });
    await create('pods', small);
    expect(why(await create('pods', pod('b', {}, { requests: { memory: '500Mi' } })))).toBe(
      'pods "b" is forbidden: exceeded quota: q, requested: pods=1,requests.memory=500Mi, used: pods=1,requests.memory=600Mi, limited: pods=1,requests.memory=1Gi',
    );
    expect(why(await create('secrets', { metadata: { name: 's' } }))).toBe(
      'secrets "s" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=0, limited: secrets=0',
    );
    expect((await used()).pods).toBe('1');
  });

  it('a pod that does not state what the quota limits', async () => {
    const { create } = await withQuota({ 'limits.cpu': '2', 'requests.memory': '1Gi' });
    expect(why(await create('pods', pod('a', { initContainers: [{ name: 'i', image: 'i' }] })))).toBe(
      'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: c,i; requests.memory for: c,i',
    );
  });

  it('the change of a service that uses more, and not one that uses the same', async () => {
    const { create, ok, api, used } = await withQuota({ services: '2', 'services.nodeports': '0' });
    await create('services', { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    const stored = await ok('GET', `${DEFAULT}/services/s`);
    const changed = { ...stored, spec: { ...stored.spec, type: 'NodePort' } };
    expect(why(await api.send('PUT', `${DEFAULT}/services/s`, { body: changed }))).toBe(
      'services "s" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0',
    );
    await ok('PUT', `${DEFAULT}/services/s`, { ...stored, metadata: { ...stored.metadata, labels: { a: 'b' } } });
    expect(await used()).toEqual({ services: '1', 'services.nodeports': '0' });
  });

  it('no change of a service that it has room for, and counts it', async () => {
    const { create, ok, used } = await withQuota({ services: '2', 'services.nodeports': '1' });
    await create('services', { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    const stored = await ok('GET', `${DEFAULT}/services/s`);
    await ok('PUT', `${DEFAULT}/services/s`, { ...stored, spec: { ...stored.spec, type: 'NodePort' } });
    expect(await used()).toEqual({ services: '1', 'services.nodeports': '1' });
  });

  it('nothing in a dry run, which changes no use', async () => {
    const { api, used } = await withQuota({ pods: '1' });
    expect((await api.send('POST', `${DEFAULT}/pods?dryRun=All`, { body: pod('a') })).code).toBe(201);
    expect(await used()).toEqual({ pods: '0' });
  });
});

describe('scopes', () => {
  const uses = async (more: object, object: object) => {
    const { create, used } = await withQuota({ pods: '9' }, more);
    await create('pods', object);
    return (await used()).pods;
  };

  it('limit a quota to pods with or without a deadline, with or without requests', async () => {
    const cases = [
      { scopes: ['Terminating'], deadline: '1', plain: '0' },
      { scopes: ['NotTerminating'], deadline: '0', plain: '1' },
    ];
    for (const { scopes, deadline, plain } of cases) {
      expect(await uses({ scopes }, pod('a', { activeDeadlineSeconds: 60 }))).toBe(deadline);
      expect(await uses({ scopes }, pod('a'))).toBe(plain);
    }
    const burstable = pod('a', {}, { requests: { cpu: '1' } });
    expect(await uses({ scopes: ['BestEffort'] }, pod('a'))).toBe('1');
    expect(await uses({ scopes: ['BestEffort'] }, burstable)).toBe('0');
    expect(await uses({ scopes: ['NotBestEffort'] }, burstable)).toBe('1');
  });

  it('select pods by their priority class', async () => {
    const withOperator = (operator: string, values?: string[]) => ({
      scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator, ...(values && { values }) }] },
    });
    const high = pod('a', { priorityClassName: 'system-node-critical' });
    expect(await uses(withOperator('In', ['system-node-critical']), high)).toBe('1');
    expect(await uses(withOperator('NotIn', ['system-node-critical']), high)).toBe('0');
    expect(await uses(withOperator('NotIn', ['x']), pod('a'))).toBe('1');
    expect(await uses(withOperator('Exists'), pod('a'))).toBe('0');
    expect(await uses(withOperator('Exists'), high)).toBe('1');
  });
});

describe('scopes are refused', () => {
  const refusal = async (spec: object) => {
    const { api } = servedWorkloads();
    const body = { metadata: { name: 'q' }, spec };
    return (await api.send('POST', QUOTAS, { body })).body.details?.causes?.map(
      ({ field, message }: { field: string; message: string }) => `${field}: ${message}`,
    );
  };
  const selector = (requirement: object) => ({
    hard: { pods: '1' },
    scopeSelector: { matchExpressions: [requirement] },
  });

  it('when they contradict each other, or cannot apply to a limit', async () => {
    expect(await refusal({ hard: { pods: '1' }, scopes: ['BestEffort', 'NotBestEffort'] })).toEqual([
      'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
    ]);
    expect(await refusal({ hard: { 'requests.cpu': '1' }, scopes: ['BestEffort'] })).toEqual([
      'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
    ]);
    expect(await refusal({ hard: { 'requests.cpu': '1' }, scopes: ['Terminating'] })).toBeUndefined();
  });

  it('when a requirement has a wrong operator, or values where it may have none', async () => {
    expect(await refusal(selector({ scopeName: 'PriorityClass', operator: 'In' }))).toEqual([
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
    ]);
    expect(await refusal(selector({ scopeName: 'PriorityClass', operator: 'Is' }))).toEqual([
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "Is": not a valid selector operator',
    ]);
    const [first] = (await refusal(selector({ scopeName: 'BestEffort', operator: 'NotIn', values: ['a'] }))) ?? [];
    expect(first).toMatch(/^spec\.scopeSelector\.matchExpressions\.operator: Invalid value: "NotIn": must be 'Exist'/);
  });
});

describe('a ReplicaSet in a namespace with a quota', () => {
  const SETS = '/apis/apps/v1/namespaces/default/replicasets';
  const set = (replicas: number) => ({
    metadata: { name: 'web' },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: pod('web').spec },
    },
  });

  it('creates the pods that the quota permits, reports the refusal, and creates the rest when it permits them', async () => {
    const cluster = await withQuota({ pods: '2' });
    await cluster.ok('POST', SETS, set(3));
    await cluster.settle();
    expect((await cluster.ok('GET', `${DEFAULT}/pods`)).items).toHaveLength(2);
    expect(await cluster.used()).toEqual({ pods: '2' });
    const [condition] = (await cluster.ok('GET', `${SETS}/web`)).status.conditions;
    expect(condition).toMatchObject({ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate' });
    expect(condition.message).toMatch(
      /^pods "web-\w+" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2$/,
    );
    const quota = await cluster.ok('GET', `${QUOTAS}/q`);
    await cluster.ok('PUT', `${QUOTAS}/q`, { ...quota, spec: { hard: { pods: '5' } } });
    await cluster.settle();
    await cluster.tickAfter(62_000);
    expect((await cluster.ok('GET', `${DEFAULT}/pods`)).items).toHaveLength(3);
    expect((await cluster.ok('GET', `${SETS}/web`)).status.conditions ?? []).toEqual([]);
  });

  it('creates its pods with the defaults of a LimitRange, and stays within its bounds', async () => {
    const cluster = servedWorkloads();
    const limits = [{ type: 'Container', default: { cpu: '100m' }, max: { cpu: '200m' } }];
    await cluster.ok('POST', `${DEFAULT}/limitranges`, { metadata: { name: 'l' }, spec: { limits } });
    await cluster.ok('POST', SETS, set(1));
    await cluster.settle();
    const [made] = (await cluster.ok('GET', `${DEFAULT}/pods`)).items;
    expect(made.spec.containers[0].resources.limits).toEqual({ cpu: '100m' });
  });
});
