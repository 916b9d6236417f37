/** Admission webhooks of `nodekeeper serve`, over TLS, as users of kubectl and machines with heartbeats meet them. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { type KubectlPlace, makePlace, oldestAndNewest, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';
import { jsonPatch, startWebhookServer, type WebhookServerForTest } from '../support/webhook-server.ts';

let local: LocalForTest;
let server: WebhookServerForTest;

beforeAll(async () => {
  [local, server] = await Promise.all([startLocalForTest({ nodes: 2 }), startWebhookServer()]);
}, 90_000);

afterAll(async () => {
  await local?.stop();
  await server?.stop();
});

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const rule = (resources: string[], apiGroups = ['']) => ({
  operations: ['CREATE', 'UPDATE'],
  apiGroups,
  apiVersions: ['v1'],
  resources,
});

const configuration = (kind: 'Mutating' | 'Validating', name: string, more: object = {}) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: `${kind}WebhookConfiguration`,
  metadata: { name },
  webhooks: [
    {
      name: `${name}.example.com`,
      clientConfig: { url: `${server.url}/${name}`, caBundle: server.caBundle },
      rules: [rule(['configmaps'])],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      ...more,
    },
  ],
});

const map = (name: string, data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

async function send(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const answer = await local.client.send({ method, path, ...(body === undefined ? {} : { body }) } as never);
  if (answer.kind !== 'answered') throw new Error(`${method} ${path}`, { cause: answer.cause });
  return answer;
}

describe.each(oldestAndNewest())('$name', { timeout: 120_000 }, (kubectl) => {
  it('applies configurations, and shows changes, refusals and warnings of their webhooks', async () => {
    const place: KubectlPlace = makePlace();
    const run = (args: string, stdin?: object) =>
      runKubectl(kubectl, args.split(' '), {
        kubeconfig: local.kubeconfig,
        place,
        stdin: stdin === undefined ? '' : JSON.stringify(stdin),
      });
    server.respond.set('/defaults', ({ object }) =>
      jsonPatch([{ op: 'add', path: '/data/owner', value: `team of ${object?.metadata.name}` }]),
    );
    server.respond.set('/check', ({ object, dryRun }) =>
      JSON.stringify(object).includes('"level":"high"')
        ? { allowed: false, status: { code: 403, message: 'too high' } }
        : { allowed: true, warnings: [`level is low, dry run ${dryRun}`] },
    );
    try {
      const both = {
        apiVersion: 'v1',
        kind: 'List',
        items: [configuration('Mutating', 'defaults'), configuration('Validating', 'check')],
      };
      expect((await run('apply -f -', both)).exitCode).toBe(0);
      expect((await run('get validatingwebhookconfigurations')).stdout).toMatch(/^NAME +WEBHOOKS +AGE\ncheck +1 /);

      const dry = await run('create --dry-run=server -o yaml -f -', map('a', { level: 'low' }));
      expect([dry.exitCode, dry.stderr]).toEqual([0, 'Warning: level is low, dry run true\n']);
      expect(dry.stdout).toContain('owner: team of a');
      const applied = await run('apply --server-side -f -', map('a', { level: 'low' }));
      expect([applied.exitCode, applied.stderr]).toEqual([0, 'Warning: level is low, dry run false\n']);
      expect((await run('get configmap a -o jsonpath={.data.owner}')).stdout).toBe('team of a');

      const refused = await run('apply --server-side -f -', map('a', { level: 'high' }));
      expect(refused.exitCode).toBe(1);
      expect(refused.stderr).toContain('admission webhook "check.example.com" denied the request: too high');
      expect((await run('get configmap a -o jsonpath={.data.level}')).stdout).toBe('low');
    } finally {
      await run('delete mutatingwebhookconfigurations,validatingwebhookconfigurations --all');
      await run('delete configmap a --ignore-not-found');
      server.respond.clear();
      place.remove();
    }
  });
});

it('a webhook that hangs delays no heartbeat, and is deleted without being asked', { timeout: 60_000 }, async () => {
  const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }];
  server.answer.set('/all', () => {});
  const path = `${GROUP}/validatingwebhookconfigurations`;
  const created = await send('POST', path, configuration('Validating', 'all', { rules, timeoutSeconds: 1 }));
  expect(created.status).toBe(201);
  const renewals = async () => {
    const { items } = (await local.read('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases')) as {
      items: { metadata: { name: string }; spec: { renewTime: string } }[];
    };
    return items.map(({ spec }) => spec.renewTime);
  };
  const before = await renewals();
  expect(before.length).toBeGreaterThanOrEqual(2);
  const refused = await send('POST', '/api/v1/namespaces/default/configmaps', map('b', {}));
  expect(refused).toMatchObject({
    status: 500,
    body: {
      message: `Internal error occurred: failed calling webhook "all.example.com": failed to call webhook: Post "${server.url}/all?timeout=1s": context deadline exceeded`,
    },
  });
  await until(async () => (await renewals()).every((time, i) => time !== before[i]), { withinMs: 30_000 });
  expect(server.reviews.filter(({ request }) => request.resource.resource === 'leases')).toEqual([]);
  expect(await send('DELETE', `${path}/all`)).toMatchObject({ status: 200 });
  expect(await send('POST', '/api/v1/namespaces/default/configmaps', map('b', {}))).toMatchObject({ status: 201 });
});

describe('pods that controllers create', { timeout: 120_000 }, () => {
  const PODS = '/api/v1/namespaces/default/pods';
  const OF_PODS = { rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }] };
  const template = (app: string, restartPolicy = 'Always') => ({
    metadata: { labels: { app } },
    spec: { restartPolicy, containers: [{ name: 'main', image: 'registry.example/app:1' }] },
  });
  const selected = (app: string, more: object = {}) => ({
    metadata: { name: app },
    spec: { selector: { matchLabels: { app } }, template: template(app), ...more },
  });
  const APPS = '/apis/apps/v1/namespaces/default';
  const only = (app: string) => ({ objectSelector: { matchLabels: { app } } });
  const hook = (kind: 'Mutating' | 'Validating', name: string, more: object) =>
    mustCreate(
      `${GROUP}/${kind.toLowerCase()}webhookconfigurations`,
      configuration(kind, name, { ...OF_PODS, ...more }),
    );

  async function mustCreate(path: string, body: object): Promise<void> {
    const answer = await send('POST', path, body);
    expect(answer).toMatchObject({ status: 201 });
  }
  const podsOf = async (app: string) => {
    const { items } = (await local.read(`${PODS}?labelSelector=app%3D${app}`)) as { items: KubePod[] };
    return items;
  };
  const failuresOf = async (name: string) => {
    const { items } = (await local.read('/api/v1/namespaces/default/events')) as {
      items: { reason: string; message: string; involvedObject: { name: string } }[];
    };
    return items
      .filter(({ reason, involvedObject }) => reason === 'FailedCreate' && involvedObject.name.startsWith(name))
      .map(({ message }) => message);
  };

  afterEach(async () => {
    for (const kind of ['validating', 'mutating']) await send('DELETE', `${GROUP}/${kind}webhookconfigurations`);
    server.respond.clear();
    server.answer.clear();
  });

  it('get the sidecar of a mutating webhook, with its defaults, whatever creates them', async () => {
    const sidecar = { name: 'proxy', image: 'registry.example/proxy:1' };
    server.respond.set('/inject', () => jsonPatch([{ op: 'add', path: '/spec/containers/-', value: sidecar }]));
    await hook('Mutating', 'inject', {});
    await mustCreate(`${APPS}/deployments`, selected('deployed', { replicas: 3 }));
    await mustCreate(`${APPS}/daemonsets`, selected('daemon'));
    await mustCreate(`${APPS}/statefulsets`, selected('stateful', { replicas: 1 }));
    const job = { metadata: { name: 'job' }, spec: { template: template('job', 'Never') } };
    await mustCreate('/apis/batch/v1/namespaces/default/jobs', job);
    for (const [app, count, account] of [
      ['deployed', 3, 'replicaset-controller'],
      ['daemon', 2, 'daemon-set-controller'],
      ['stateful', 1, 'statefulset-controller'],
      ['job', 1, 'job-controller'],
    ] as const) {
      const found = await until(async () => (await podsOf(app)).length >= count && podsOf(app), { withinMs: 20_000 });
      for (const { spec } of found) {
        expect(spec?.containers?.map(({ name, imagePullPolicy }) => [name, imagePullPolicy])).toEqual([
          ['main', 'IfNotPresent'],
          ['proxy', 'IfNotPresent'],
        ]);
      }
      const review = server.reviews.find(({ request }) => request.object?.metadata.labels?.['app'] === app);
      expect(review?.request.userInfo.username).toBe(`system:serviceaccount:kube-system:${account}`);
    }
  });

  it('are refused by webhooks and policies with an event of their owner, until these let them pass', async () => {
    server.respond.set('/refuse', () => ({ allowed: false, status: { code: 403, message: 'not on Sundays' } }));
    await hook('Validating', 'refuse', only('refused'));
    const policies = `${GROUP}/validatingadmissionpolicies`;
    const validations = [{ expression: "object.metadata.labels.app != 'unwanted'", message: 'unwanted' }];
    const matchConstraints = { resourceRules: OF_PODS.rules };
    await mustCreate(policies, { metadata: { name: 'wanted' }, spec: { matchConstraints, validations } });
    const spec = { policyName: 'wanted', validationActions: ['Deny'] };
    await mustCreate(`${GROUP}/validatingadmissionpolicybindings`, { metadata: { name: 'wanted' }, spec });
    for (const app of ['refused', 'unwanted']) await mustCreate(`${APPS}/deployments`, selected(app));
    const first = (app: string) => until(async () => (await failuresOf(app))[0], { withinMs: 15_000 });
    expect(await first('refused')).toBe(
      'Error creating: admission webhook "refuse.example.com" denied the request: not on Sundays',
    );
    expect(await first('unwanted')).toMatch(/^Error creating: pods "unwanted-.*denied request: unwanted$/);
    const { items } = (await local.read(`${APPS}/replicasets?labelSelector=app%3Drefused`)) as { items: KubeObject[] };
    expect(items[0]?.status?.['conditions']).toMatchObject([{ type: 'ReplicaFailure', reason: 'FailedCreate' }]);
    expect([await podsOf('refused'), await podsOf('unwanted')]).toEqual([[], []]);
    server.respond.clear();
    await send('DELETE', `${policies}/wanted`);
    for (const app of ['refused', 'unwanted']) {
      await until(async () => (await podsOf(app)).length === 1, { withinMs: 30_000, what: `a pod of ${app}` });
    }
  });

  it('wait for a webhook that hangs, and delay those of no other owner', async () => {
    const hanging = { timeoutSeconds: 2 };
    for (const [name, failurePolicy] of [
      ['ignored', 'Ignore'],
      ['failing', 'Fail'],
    ] as const) {
      server.answer.set(`/${name}`, () => {});
      await hook('Validating', name, { ...hanging, ...only(name), failurePolicy });
    }
    const named = (app: string, name: string) => ({ ...selected(app), metadata: { name } });
    for (let index = 0; index < 12; index += 1) {
      await mustCreate(`${APPS}/replicasets`, named('failing', `failing-${index}`));
    }
    await mustCreate(`${APPS}/deployments`, selected('ignored'));
    const startedMs = performance.now();
    await mustCreate(`${APPS}/deployments`, selected('free', { replicas: 3 }));
    await until(async () => (await podsOf('free')).length === 3, { withinMs: 10_000 });
    // Twelve owners one after the other would take 24 s.
    expect(performance.now() - startedMs).toBeLessThan(8_000);
    await until(async () => (await podsOf('ignored')).length === 1, { withinMs: 30_000 });
    const failures = await until(async () => (await failuresOf('failing-0'))[0] && failuresOf('failing-0'), {
      withinMs: 30_000,
    });
    expect(failures).toEqual([
      `Error creating: Internal error occurred: failed calling webhook "failing.example.com": failed to call webhook: Post "${server.url}/failing?timeout=2s": context deadline exceeded`,
    ]);
    expect(await podsOf('failing')).toEqual([]);
  });
});
