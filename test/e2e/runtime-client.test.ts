/**
 * Every function as it is deployed, under AWS's own runtime client: its bundle loads, and it answers an event of its
 * kind. The services are those of local mode, and so is everything that made the events.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { stateChangeEvent } from '../../aws-local/cloud/events.ts';
import { createEngineClient } from '../../aws-local/engine/client.ts';
import { gatewayEvent } from '../../aws-local/http/gateway-event.ts';
import { type LocalSystem, startLocal } from '../../aws-local/runtime.ts';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import { type FunctionName, functionList } from '../../functions/function-list.ts';
import { wakeUpEvent } from '../../shared/aws/wake-up.ts';
import { PROTOBUF, protobufBody } from '../support/protobuf-body.ts';
import { hasRuntimeClient, RuntimeClient } from '../support/runtime-client/runtime-client.ts';

const PLACE = { region: 'us-east-1', accountId: '000000000000' };
const NODE = 'edge';
const NODES = '/api/v1/nodes';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: NODE, namespace: 'kube-node-lease' },
  spec: { holderIdentity: NODE, leaseDurationSeconds: 40 },
};
/** Four seconds alone on an idle machine. */
const TEST_TIMEOUT_MS = 30_000;
/** Together more than the buffers of a connection hold. */
const STALLING_NODES = 90;
const STALLING_BYTES_PER_NODE = 90_000;
/** Waits of the process for its client are a hundredth as long. */
const SHORT_WAITS = `data:text/javascript,${encodeURIComponent(
  'const wait = AbortSignal.timeout; AbortSignal.timeout = (ms) => wait.call(AbortSignal, ms / 100);',
)}`;

const TITLE = `under AWS's runtime client${hasRuntimeClient() ? '' : ' (skipped: .ci/run installs aws-lambda-ric)'}`;

describe.skipIf(!hasRuntimeClient())(TITLE, { timeout: TEST_TIMEOUT_MS }, () => {
  let system: LocalSystem;
  let client: ApiClient;
  let folder: string;

  beforeAll(async () => {
    // Without limits: the functions then use the engine itself, which has the streams of the tables.
    folder = mkdtempSync(join(tmpdir(), 'nk-runtime-client-'));
    system = await startLocal({ awsLimits: false, controllers: false, print: () => {} });
    const { url, caPem: ca, adminToken: token } = system;
    writeFileSync(join(folder, 'ca.pem'), ca);
    client = createApiClient({ url, ca, token, connectionsMax: 4, timeoutMs: 30_000 });
    await create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
    await create(LEASES, lease);
  }, 120_000);
  afterAll(async () => {
    client?.close();
    await system?.stop();
    rmSync(folder, { recursive: true });
  });

  async function create(path: string, body: object): Promise<void> {
    const answer = await client.send({ method: 'POST', path, body });
    expect(answer).toMatchObject({ status: 201 });
  }

  async function started(name: FunctionName, preload: readonly string[] = []): Promise<RuntimeClient> {
    const { plan, variables } = system.functions.find((fn) => fn.plan.name === name)!;
    // node-monitor sends a heartbeat through the API.
    const trust = { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') };
    const runtime = await RuntimeClient.start({ plan, variables: { ...variables, ...trust } }, preload);
    onTestFinished(() => runtime.stop());
    return runtime;
  }

  function httpEvent(method: string, target: string, body = '', contentType = 'application/merge-patch+json') {
    return gatewayEvent(
      {
        ...{ method, target, sourceIp: '203.0.113.1', protocol: 'HTTP/1.1' },
        rawHeaders: ['authorization', `Bearer ${system.adminToken}`, 'content-type', contentType],
        body: Buffer.from(body, 'latin1'),
      },
      // No service answers there: the measurement of a watch fails.
      { ...PLACE, routeKey: '$default', requestId: 'r', apiId: 'a', domainName: '127.0.0.1:9', nowMs: Date.now() },
    );
  }
  const messageEvent = (body: object) => ({
    Records: [
      {
        messageId: randomUUID(),
        receiptHandle: 'handle',
        body: JSON.stringify(body),
        attributes: { ApproximateReceiveCount: '1', SentTimestamp: String(Date.now()), SenderId: 'AIDA' },
        messageAttributes: {},
        eventSource: 'aws:sqs',
        eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:queue',
        awsRegion: PLACE.region,
      },
    ],
  });
  const part = () => ({ part: 'nodes', slot: 1, fence: 1, decidedAtMs: Date.now(), untilMs: Date.now() + 15_000 });

  /** What was written to a table. */
  async function streamEvent(table: string) {
    const engine = createEngineClient(system.dynamodb.endpoint);
    onTestFinished(() => engine.close());
    const TableName = system.dynamodb.tableNames.find((name) => name.includes(table))!;
    const { Table: described } = await engine.call('DynamoDB_20120810.DescribeTable', { TableName });
    const StreamArn = (described as { LatestStreamArn: string }).LatestStreamArn;
    const call = (name: string, input: object) => engine.call(`DynamoDBStreams_20120810.${name}`, input);
    const { StreamDescription: stream } = await call('DescribeStream', { StreamArn });
    const ShardId = (stream as { Shards: { ShardId: string }[] }).Shards[0]!.ShardId;
    const at = await call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' });
    const { Records: records } = await call('GetRecords', { ShardIterator: at['ShardIterator'], Limit: 100 });
    expect(records).not.toEqual([]);
    return { Records: (records as object[]).map((record) => ({ ...record, eventSourceARN: StreamArn })) };
  }

  const nothingFailed = { kind: 'response', payload: { batchItemFailures: [] } };
  const returnedNothing = { kind: 'response', payload: null };
  const change = { atMs: 0, instanceId: 'i-0123456789abcdef0', state: 'stopped' } as const;
  const wakeUp = () => wakeUpEvent(Date.now());
  const cases: Readonly<Record<FunctionName, { event(): unknown; answer: object }>> = {
    heartbeat: {
      event: () => httpEvent('PATCH', `${LEASES}/${NODE}`, '{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}'),
      answer: { kind: 'response', payload: { statusCode: 200, body: expect.stringContaining('"renewTime"') } },
    },
    api: {
      event: () => httpEvent('GET', `${NODES}/${NODE}`),
      answer: { kind: 'response', payload: { statusCode: 200, body: expect.stringContaining(`"name":"${NODE}"`) } },
    },
    watch: {
      event: () => httpEvent('GET', `${NODES}?watch=1&timeoutSeconds=1`),
      answer: {
        kind: 'streamed',
        head: { statusCode: 200, headers: { 'content-type': 'application/json' } },
        body: expect.stringMatching(/^ *\{"type":"ADDED",.*\}\n/),
        errorType: undefined,
      },
    },
    'node-monitor': { event: () => messageEvent({ slot: 1 }), answer: nothingFailed },
    'node-marker': {
      event: () => messageEvent({ ...part(), ready: [NODE], notReady: [], zones: [] }),
      answer: nothingFailed,
    },
    'health-stream': { event: () => streamEvent('Health'), answer: nothingFailed },
    'object-stream': { event: () => streamEvent('Objects'), answer: nothingFailed },
    workloads: { event: () => streamEvent('Objects'), answer: nothingFailed },
    'cloud-node': { event: () => stateChangeEvent(change, PLACE), answer: returnedNothing },
    evictor: { event: wakeUp, answer: returnedNothing },
    'pod-gc': { event: wakeUp, answer: returnedNothing },
    scheduler: { event: wakeUp, answer: returnedNothing },
  };

  it.each(functionList.map(({ name }) => name))('%s loads, and answers an event of its kind', async (name) => {
    const runtime = await started(name);
    const { event, answer } = cases[name];
    expect(await runtime.invoke(await event()), runtime.output).toMatchObject(answer);
    await runtime.waiting();
    expect(runtime.output).not.toMatch(/"level":"(ERROR|FATAL)"/);
  });

  it('api loads what the first body in protobuf needs', async () => {
    const runtime = await started('api');
    const body = Buffer.from(protobufBody({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'typed' } }));
    const event = httpEvent('POST', '/api/v1/namespaces', body.toString('latin1'), PROTOBUF);
    const answer = { kind: 'response', payload: { statusCode: 201, body: expect.stringContaining('"name":"typed"') } };
    expect(await runtime.invoke(event), runtime.output).toMatchObject(answer);
  });

  it('watch ends an answer that its client does not read, and the process receives the next event', async () => {
    const annotations = { large: 'x'.repeat(STALLING_BYTES_PER_NODE) };
    for (let index = 0; index < STALLING_NODES; index += 1) {
      await create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: `large-${index}`, annotations } });
    }
    const runtime = await started('watch', [SHORT_WAITS]);
    const target = `${NODES}?watch=1&timeoutSeconds=1`;
    await runtime.invokeWithoutReading(httpEvent('GET', target));
    const next = await runtime.invoke(httpEvent('GET', `${target}&fieldSelector=metadata.name=${NODE}`));
    expect(next, runtime.output).toMatchObject({ kind: 'streamed', head: { statusCode: 200 }, errorType: undefined });
  });
});
