/** Admission webhooks of `nodekeeper serve`, over TLS, as users of kubectl and machines with heartbeats meet them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
