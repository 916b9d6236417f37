import { expect, it } from 'vitest';
import { MERGE } from '../../../test/support/api-in-memory.ts';
import { servedWorkloads } from '../../../test/support/served-workloads.ts';

const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };

it.each([
  ['/api/v1/namespaces/default/replicationcontrollers', { app: 'a' }],
  ['/apis/apps/v1/namespaces/default/replicasets', { matchLabels: { app: 'a' } }],
])('a status that a client wrote to one of %s is written again by its controller', async (path, selector) => {
  const cluster = servedWorkloads();
  await cluster.ok('POST', path, { metadata: { name: 'a' }, spec: { replicas: 1, selector, template } });
  await cluster.settle();
  expect((await cluster.ok('GET', `${path}/a`)).status.replicas).toBe(1);
  await cluster.api.send('PATCH', `${path}/a/status`, { body: { status: { replicas: 7 } }, contentType: MERGE });
  await cluster.settle();
  expect((await cluster.ok('GET', `${path}/a`)).status.replicas).toBe(1);
});
