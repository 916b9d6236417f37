/**
 * The emulation over Amazon's own DynamoDB Local: where there is no binary of the embedded engine, people use that one.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalSystem, startLocal } from '../../aws-local/runtime.ts';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import { findDynamoDbLocal, startDynamoDbLocal } from '../support/dynamodb-local.ts';
import type { TestEngine } from '../support/engine.ts';
import { until } from '../support/until.ts';

const found = await findDynamoDbLocal({ required: process.env['CI'] !== undefined });
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const labels = { app: 'web' };
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };

let engine: TestEngine | undefined;
let system: LocalSystem;
let client: ApiClient;

beforeAll(async () => {
  if (found.kind === 'absent') return;
  engine = await startDynamoDbLocal(found.directory);
  system = await startLocal({ dynamodbEndpoint: engine.endpoint, print: () => {} });
  const { url, caPem: ca, adminToken: token } = system;
  client = createApiClient({ url, ca, token, connectionsMax: 4, timeoutMs: 30_000 });
}, 120_000);

afterAll(async () => {
  client?.close();
  await system?.stop();
  await engine?.stop();
});

it.skipIf(found.kind === 'absent')('creates the pods of a Deployment, which its streams deliver', async () => {
  const body = { metadata: { name: 'web' }, spec: { replicas: 2, selector: { matchLabels: labels }, template } };
  expect(await client.send({ method: 'POST', path: DEPLOYMENTS, body })).toMatchObject({ status: 201 });
  const pods = async () => {
    const answer = await client.send({ method: 'GET', path: '/api/v1/namespaces/default/pods' });
    return answer.kind === 'answered' ? (answer.body as { items: object[] }).items : [];
  };
  await until(async () => (await pods()).length === 2, { withinMs: 30_000, what: 'two pods' });
});
