/** ChangeReads over HTTPS by a service account with the role of hubs, across a kill of the server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createApiClient } from '../../demo/fleet/api-client.ts';
import { defined } from '../../shared/defined.ts';
import type { ChangeRead, ChangesOfResource } from '../../shared/watches/change-read.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

it('a service account with the role follows the cluster, and misses nothing after a kill', {
  timeout: 90_000,
}, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'nk-changes-'));
  const start = () => startLocalForTest({ nodes: 0, controllers: false, dataDir });
  let local: LocalForTest = await start();
  onTestFinished(async () => {
    await local.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of several kinds.
  const post = async (client: LocalForTest['client'], path: string, body: unknown): Promise<any> => {
    const answer = await client.send({ method: 'POST', path, body });
    if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  };
  await post(local.client, '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'hub' } });
  await post(local.client, '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'hub' },
    subjects: [{ kind: 'ServiceAccount', name: 'hub', namespace: 'default' }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:nodekeeper:hub' },
  });
  const { status } = await post(local.client, '/api/v1/namespaces/default/serviceaccounts/hub/token', { spec: {} });
  const read = async (resources: ChangeRead['spec']['resources']): Promise<readonly ChangesOfResource[]> => {
    const { url, ca } = local.access;
    const hub = createApiClient({ url, ...defined({ ca }), token: status.token, connectionsMax: 1, timeoutMs: 20_000 });
    try {
      const answer = await post(hub, '/apis/nodekeeper.dev/v1alpha1/changereads', { spec: { resources } });
      return answer.status.resources;
    } finally {
      hub.close();
    }
  };
  const list = (await local.read(MAPS)) as { metadata: { resourceVersion: string } };
  const cursor = { group: '', resource: 'configmaps', after: list.metadata.resourceVersion };
  await post(local.client, MAPS, { metadata: { name: 'before' } });
  const [first, secrets] = await read([cursor, { group: '', resource: 'secrets', after: '0' }]);
  expect(first).toMatchObject({ more: false, changes: [{ type: 'ADDED', object: { metadata: { name: 'before' } } }] });
  expect(secrets).toMatchObject({ outcome: 'forbidden' });
  await post(local.client, MAPS, { metadata: { name: 'last' } });
  await local.kill();
  local = await start();
  const after = first?.outcome === 'changes' ? first.through : '';
  expect(await read([{ ...cursor, after }])).toMatchObject([
    { more: false, changes: [{ type: 'ADDED', object: { metadata: { name: 'last' } } }] },
  ]);
});
