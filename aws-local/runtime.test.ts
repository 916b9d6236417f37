import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect as connectH2 } from 'node:http2';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../shared/host/loopback.ts';
import { type LocalOptions, type LocalSystem, startLocal } from './runtime.ts';

/** Handlers small enough to read, bundled by hand: they speak DynamoDB's protocol with fetch. */
const COMMON = `
export const ddb = async (operation, input) => {
  const response = await fetch(process.env.AWS_ENDPOINT_URL_DYNAMODB, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'DynamoDB_20120810.' + operation, 'x-amz-date': '20260101T000000Z',
      authorization: 'AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
    },
    body: JSON.stringify(input),
  });
  return await response.json();
};
export const aws = async (service, path, body, headers) => {
  const response = await fetch(process.env['AWS_ENDPOINT_URL_' + service] + path, {
    method: 'POST',
    headers: {
      authorization: 'AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/' + service.toLowerCase() + '/aws4_request, SignedHeaders=host, Signature=0',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  if (response.status >= 300) throw new Error(service + ' answered ' + response.status + await response.text());
};
export const answer = (statusCode, value, more) => ({ statusCode, headers: { 'content-type': 'application/json' }, body: JSON.stringify(value), ...more });
`;

const HANDLERS: Record<string, string> = {
  api: `
import { ddb, answer } from './common.mjs';
export const handler = async (event) => {
  const path = event.rawPath;
  if (path === '/fail') throw new Error('broken on purpose');
  if (path === '/hang') return new Promise(() => {});
  if (path === '/tokens') return answer(200, process.env.STATIC_TOKENS);
  if (path === '/watch') return { statusCode: 307, headers: { location: process.env.WATCH_URL }, body: '' };
  if (path === '/bytes') return { statusCode: 200, body: 'AAEC', isBase64Encoded: true, headers: { 'Content-Type': 'application/octet-stream' } };
  if (path === '/self') return answer(200, (await fetch(process.env.API_URL + '/echo')).status);
  if (path === '/items') {
    const { Items: items } = await ddb('Scan', { TableName: process.env.NOTES_TABLE });
    return answer(200, items.map((item) => item.pk.S).sort());
  }
  return answer(200, event);
};`,
  beat: `
import { ddb, answer } from './common.mjs';
export const handler = async ({ pathParameters: { name }, queryStringParameters: query }) => {
  await ddb('PutItem', { TableName: process.env.BEATS_TABLE, Item: { pk: { S: name }, s: { N: query?.suspect ?? '0' } } });
  return answer(200, { name });
};`,
  changes: `
import { ddb } from './common.mjs';
export const handler = async ({ Records: records }) => {
  const batchItemFailures = [];
  for (const { dynamodb: { Keys: { pk: { S: name } }, SequenceNumber: itemIdentifier } } of records) {
    if (name.startsWith('poison')) batchItemFailures.push({ itemIdentifier });
    else await ddb('PutItem', { TableName: process.env.NOTES_TABLE, Item: { pk: { S: 'changed-' + name } } });
  }
  return { batchItemFailures };
};`,
  tick: `
import { aws, ddb } from './common.mjs';
const note = (name) => ddb('PutItem', { TableName: process.env.NOTES_TABLE, Item: { pk: { S: name } } });
export const handler = async ({ Records: records, wakeUp }) => {
  if (wakeUp) return note('woken');
  const body = JSON.parse(records[0].body);
  if (body.slot) {
    await note('tick-' + body.slot);
    const headers = { 'x-amz-invocation-type': 'Event' };
    await aws('LAMBDA', '/2015-03-31/functions/' + process.env.AWS_LAMBDA_FUNCTION_NAME + '/invocations', { wakeUp: 1 }, headers);
    return { batchItemFailures: [] };
  }
  await aws('SQS', '/', { QueueUrl: process.env.QUEUE_URL, MessageBody: '{"slot":2}', DelaySeconds: 1 }, { 'x-amz-target': 'AmazonSQS.SendMessage' });
  return { batchItemFailures: [] };
};`,
};

HANDLERS['watch'] = `
export const handler = awslambda.streamifyResponse(async (event, responseStream) => {
  const { queryStringParameters: query = {}, rawPath } = event;
  if (query.fail === 'before') throw new Error('before the head');
  const stream = awslambda.HttpResponseStream.from(responseStream, { statusCode: 200, headers: { 'content-type': 'application/json' } });
  stream.write('');
  for (let index = 0; index < Number(query.events); index += 1) {
    stream.write(JSON.stringify({ index, rawPath }) + '\\n');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (query.fail === 'after') throw new Error('after the head');
  if (query.hold) await new Promise(() => {});
  stream.end();
});`;

const table = (stream: boolean) => ({
  Type: 'AWS::DynamoDB::Table',
  Properties: {
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
    ...(stream ? { StreamSpecification: { StreamViewType: 'NEW_AND_OLD_IMAGES' } } : {}),
  },
});

const fn = (name: string, environment: object) => ({
  Type: 'AWS::Lambda::Function',
  Properties: {
    Code: { S3Key: `${name}.zip` },
    Handler: 'index.handler',
    Runtime: 'nodejs24.x',
    Timeout: 2,
    Environment: { Variables: { POWERTOOLS_SERVICE_NAME: name, ...environment } },
  },
});

const integration = (name: string) => ({
  Type: 'AWS::ApiGatewayV2::Integration',
  Properties: {
    IntegrationType: 'AWS_PROXY',
    PayloadFormatVersion: '2.0',
    IntegrationUri: { 'Fn::GetAtt': [name, 'Arn'] },
  },
});

const route = (routeKey: string, integrationId: string) => ({
  Type: 'AWS::ApiGatewayV2::Route',
  Properties: { RouteKey: routeKey, Target: { 'Fn::Join': ['', ['integrations/', { Ref: integrationId }]] } },
});

const TEMPLATE = {
  Parameters: { StaticTokens: { Type: 'String', Default: '[]' } },
  Resources: {
    Beats: table(true),
    Notes: table(false),
    ApiFunction: fn('api', {
      NOTES_TABLE: { Ref: 'Notes' },
      STATIC_TOKENS: { Ref: 'StaticTokens' },
      API_URL: { 'Fn::GetAtt': ['Api', 'ApiEndpoint'] },
      WATCH_URL: { 'Fn::GetAtt': ['WatchUrl', 'FunctionUrl'] },
    }),
    WatchFunction: fn('watch', {}),
    WatchUrl: {
      Type: 'AWS::Lambda::Url',
      Properties: {
        AuthType: 'NONE',
        InvokeMode: 'RESPONSE_STREAM',
        TargetFunctionArn: { 'Fn::GetAtt': ['WatchFunction', 'Arn'] },
      },
    },
    BeatFunction: fn('beat', { BEATS_TABLE: { Ref: 'Beats' } }),
    ChangesFunction: fn('changes', { NOTES_TABLE: { Ref: 'Notes' } }),
    TickFunction: fn('tick', { NOTES_TABLE: { Ref: 'Notes' }, QUEUE_URL: { Ref: 'TickQueue' } }),
    Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { ProtocolType: 'HTTP' } },
    ApiIntegration: integration('ApiFunction'),
    BeatIntegration: integration('BeatFunction'),
    DefaultRoute: route('$default', 'ApiIntegration'),
    BeatRoute: route('PUT /beats/{name}', 'BeatIntegration'),
    FailedChanges: { Type: 'AWS::SQS::Queue', Properties: {} },
    ChangesSource: {
      Type: 'AWS::Lambda::EventSourceMapping',
      Properties: {
        EventSourceArn: { 'Fn::GetAtt': ['Beats', 'StreamArn'] },
        FunctionName: { Ref: 'ChangesFunction' },
        StartingPosition: 'TRIM_HORIZON',
        BatchSize: 10,
        BisectBatchOnFunctionError: true,
        MaximumRetryAttempts: 1,
        FunctionResponseTypes: ['ReportBatchItemFailures'],
        DestinationConfig: { OnFailure: { Destination: { 'Fn::GetAtt': ['FailedChanges', 'Arn'] } } },
        FilterCriteria: {
          Filters: [
            { Pattern: '{"eventName":["INSERT"]}' },
            { Pattern: '{"dynamodb":{"NewImage":{"s":{"N":["1"]}}}}' },
          ],
        },
      },
    },
    TickQueue: { Type: 'AWS::SQS::Queue', Properties: { MessageRetentionPeriod: 240 } },
    TickSchedule: {
      Type: 'AWS::Scheduler::Schedule',
      Properties: {
        ScheduleExpression: 'cron(* * * * ? *)',
        Target: {
          Arn: { 'Fn::GetAtt': ['TickQueue', 'Arn'] },
          Input: '{"startedAt":"<aws.scheduler.scheduled-time>"}',
        },
      },
    },
    TickOptions: {
      Type: 'AWS::Lambda::EventInvokeConfig',
      Properties: { FunctionName: { Ref: 'TickFunction' }, Qualifier: '$LATEST', MaximumRetryAttempts: 0 },
    },
    TickSource: {
      Type: 'AWS::Lambda::EventSourceMapping',
      Properties: {
        EventSourceArn: { 'Fn::GetAtt': ['TickQueue', 'Arn'] },
        FunctionName: { Ref: 'TickFunction' },
        BatchSize: 1,
        FunctionResponseTypes: ['ReportBatchItemFailures'],
        ScalingConfig: { MaximumConcurrency: 2 },
      },
    },
  },
};

function writeAssembly(directory: string, template: object): string {
  mkdirSync(directory, { recursive: true });
  const write = (name: string, content: object) => writeFileSync(join(directory, name), JSON.stringify(content));
  const files: Record<string, object> = {};
  for (const [name, source] of Object.entries(HANDLERS)) {
    const path = `asset.${name}`;
    mkdirSync(join(directory, path), { recursive: true });
    writeFileSync(join(directory, path, 'index.mjs'), source);
    writeFileSync(join(directory, path, 'common.mjs'), COMMON);
    files[name] = { source: { path, packaging: 'zip' }, destinations: { here: { objectKey: `${name}.zip` } } };
  }
  write('Test.template.json', template);
  write('Test.assets.json', { files });
  write('manifest.json', {
    artifacts: {
      Assets: { type: 'cdk:asset-manifest', properties: { file: 'Test.assets.json' } },
      Test: { type: 'aws:cloudformation:stack', properties: { templateFile: 'Test.template.json' } },
    },
  });
  return directory;
}

let folder: string;
let assemblyDirectory: string;
const running: LocalSystem[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-test-'));
  assemblyDirectory = writeAssembly(join(folder, 'assembly'), TEMPLATE);
  return () => rmSync(folder, { recursive: true });
});

afterEach(async () => {
  for (const system of running.splice(0)) await system.stop();
});

async function aSystem(options: LocalOptions = {}) {
  const lines: string[] = [];
  const system = await startLocal({
    assemblyDirectory,
    dynamodbEndpoint: '',
    print: (line) => lines.push(line),
    ...options,
  });
  running.push(system);
  return { system, lines, call: caller(system) };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Buffer;
  json(): unknown;
}

function caller(system: LocalSystem) {
  return (method: string, path: string, options: { body?: Buffer | string; headers?: Record<string, string> } = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const sent = request(
        `${system.url}${path}`,
        { method, ca: system.caPem, headers: options.headers ?? {}, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('error', reject);
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => {
            const body = Buffer.concat(chunks);
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body,
              json: () => JSON.parse(body.toString()),
            });
          });
        },
      );
      sent.on('error', reject);
      sent.end(options.body);
    });
}

describe('the local mode', () => {
  it('serves the routes of the template over TLS with its own authority', async () => {
    const { system, call } = await aSystem();
    const echo = await call('POST', '/any/where?x=1', {
      body: '{"a":1}',
      headers: { 'Content-Type': 'application/json' },
    });
    expect(echo.status).toBe(200);
    expect(echo.headers['apigw-requestid']).toBeTypeOf('string');
    expect(echo.json()).toMatchObject({
      version: '2.0',
      routeKey: '$default',
      rawPath: '/any/where',
      rawQueryString: 'x=1',
      body: '{"a":1}',
      isBase64Encoded: false,
    });
    expect((await call('PUT', '/beats/n1')).json()).toEqual({ name: 'n1' });
    expect((await call('GET', '/bytes')).body).toEqual(Buffer.from([0, 1, 2]));
    const binary = await call('POST', '/x', {
      body: Buffer.from([1, 2, 255]),
      headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
    });
    expect(binary.json()).toMatchObject({ body: 'AQL/', isBase64Encoded: true });
    expect((await system.counters()).functions['beat']).toMatchObject({ invocations: 1, errors: 0 });
  });

  it('keeps a connection that rests longer than from beat to beat', async () => {
    const { call } = await aSystem({ controllers: false });
    const { headers } = await call('GET', '/x', { headers: { connection: 'keep-alive' } });
    expect(headers['keep-alive']).toBe('timeout=60');
  });

  it('speaks HTTP/2 with clients that want it', async () => {
    const { system } = await aSystem({ controllers: false });
    const session = connectH2(system.url, { ca: system.caPem });
    const stream = session.request({ ':path': '/h2', accept: 'a' });
    const body = await new Promise<string>((resolve, reject) => {
      let text = '';
      stream.on('data', (chunk) => {
        text += chunk;
      });
      stream.on('end', () => resolve(text));
      stream.on('error', reject);
    });
    session.close();
    expect(JSON.parse(body)).toMatchObject({
      rawPath: '/h2',
      headers: { accept: 'a', host: system.url.slice(8) },
      requestContext: { http: { protocol: 'HTTP/2.0' } },
    });
  });

  it('answers for functions that fail or hang as the gateway does, and shows why', async () => {
    const { call, lines } = await aSystem({ controllers: false });
    const failed = await call('GET', '/fail');
    expect([failed.status, failed.json()]).toEqual([500, { message: 'Internal Server Error' }]);
    expect(lines.join('\n')).toMatch(/^api \| ERROR Error: broken on purpose$/m);
    const hung = await call('GET', '/hang');
    expect([hung.status, hung.json()]).toEqual([500, { message: 'Internal Server Error' }]);
    expect(lines.join('\n')).toMatch(/^api \| ERROR Sandbox.Timedout: timed out after 2 s$/m);
    expect((await call('GET', '/echo')).status).toBe(200);
    expect((await call('POST', '/big', { body: Buffer.alloc(10_000_001) })).status).toBe(413);
    expect((await call('GET', '/x', { headers: { authorization: 'x'.repeat(10_240) } })).status).toBe(431);
  });

  it('lets functions reach the API under its public name', async () => {
    const { call } = await aSystem({ controllers: false });
    expect((await call('GET', '/self')).json()).toBe(200);
  });

  it('streams the response of a function that has a URL of its own, as it is written', async () => {
    const { system, call } = await aSystem({ controllers: false });
    const base = String((await call('GET', '/watch')).headers['location']);
    expect(base).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/$/);
    const url = caller({ ...system, url: base.slice(0, -1) });
    const whole = await url('GET', '/a%20b?events=3');
    expect([whole.status, whole.headers['content-type'], whole.headers['content-length']]).toEqual([
      200,
      'application/json',
      undefined,
    ]);
    expect(
      whole.body
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([0, 1, 2].map((index) => ({ index, rawPath: '/a%20b' })));
    expect((await url('GET', '/?fail=before')).status).toBe(502);
    await expect(url('GET', '/?events=1&fail=after')).rejects.toThrow();
    // The function's own timeout of 2 s ends a held stream; its environment is replaced.
    await expect(url('GET', '/?events=1&hold=1')).rejects.toThrow();
    expect((await url('GET', '/?events=1')).status).toBe(200);
    expect((await system.counters()).functions['watch']).toMatchObject({ invocations: 5, errors: 2, timeouts: 1 });
  });

  it.each([
    [false, { environments: 0, timeouts: 0 }],
    [true, { environments: 0, timeouts: 1 }],
  ])('with awsLimits %s, a stream ends as %j', async (awsLimits, ended) => {
    const { system, call } = await aSystem({ controllers: false, awsLimits });
    const base = String((await call('GET', '/watch')).headers['location']);
    await new Promise<void>((resolve, reject) => {
      const sent = request(`${base}?events=2&hold=1`, { ca: system.caPem, agent: false }, () => {
        sent.destroy();
        resolve();
      });
      sent.on('error', reject);
      sent.end();
    });
    const watch = async () => (await system.counters()).functions['watch'];
    // The function has a timeout of 2 s.
    await expect.poll(watch, { timeout: 10_000 }).toMatchObject({ ...ended, invocations: 1, errors: 0 });
  });

  it('answers for a function without an execution left: 503 by the HTTP API, 429 by its own URL', async () => {
    const { system, call } = await aSystem({ controllers: false, accountConcurrency: 1 });
    const base = String((await call('GET', '/watch')).headers['location']);
    const held = new Promise<void>((resolve, reject) => {
      const sent = request(`${base}?events=2&hold=1`, { ca: system.caPem, agent: false }, () => resolve());
      sent.on('error', reject).end();
      onTestFinished(() => void sent.destroy());
    });
    await held;
    const answer = await call('GET', '/echo');
    expect([answer.status, answer.json()]).toEqual([503, { message: 'Service Unavailable' }]);
    const second = await new Promise<number>((resolve, reject) => {
      request(base, { ca: system.caPem, agent: false }, ({ statusCode = 0 }) => resolve(statusCode))
        .on('error', reject)
        .end();
    });
    expect(second).toBe(429);
    const { functions, concurrency } = await system.counters();
    expect(concurrency).toEqual({ limit: 1, inUse: 1, mostInUse: 1 });
    expect([functions['api']?.throttles, functions['watch']?.throttles]).toEqual([1, 1]);
  });

  it('answers 429 above the limit of a stage, while a route with a limit of its own is served', async () => {
    const limited = structuredClone(TEMPLATE) as { Resources: Record<string, object> };
    limited.Resources['Stage'] = {
      Type: 'AWS::ApiGatewayV2::Stage',
      Properties: {
        DefaultRouteSettings: { ThrottlingRateLimit: 0.001, ThrottlingBurstLimit: 2 },
        RouteSettings: { 'PUT /beats/{name}': { ThrottlingRateLimit: 100, ThrottlingBurstLimit: 100 } },
      },
    };
    const directory = writeAssembly(join(folder, 'limited'), limited);
    const { system, call } = await aSystem({ controllers: false, assemblyDirectory: directory });
    const answers = [await call('GET', '/a'), await call('GET', '/b'), await call('GET', '/c')];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers[2]?.json()).toEqual({ message: 'Too Many Requests' });
    expect((await call('PUT', '/beats/n1')).status).toBe(200);
    expect((await system.counters()).http.throttled).toBe(1);
  });

  it('refuses writes above the capacity of a provisioned table, unless the limits of AWS are off', async () => {
    const provisioned = structuredClone(TEMPLATE) as { Resources: Record<string, { Properties: object }> };
    Object.assign(provisioned.Resources['Beats']!.Properties, {
      BillingMode: 'PROVISIONED',
      ProvisionedThroughput: { ReadCapacityUnits: 1, WriteCapacityUnits: 1 },
    });
    const directory = writeAssembly(join(folder, 'provisioned'), provisioned);
    const throttled = async (awsLimits: boolean) => {
      const { system, call } = await aSystem({ controllers: false, awsLimits, assemblyDirectory: directory });
      // A new table has kept no unused capacity of earlier minutes, but DynamoDB starts with that of five.
      for (let beat = 0; beat < 2_000 && (await system.counters()).dynamodb?.throttled === 0; beat += 20) {
        await Promise.all(Array.from({ length: 20 }, () => call('PUT', '/beats/n1')));
      }
      return (await system.counters()).dynamodb?.throttled;
    };
    expect(await throttled(true)).toBeGreaterThan(0);
    expect(await throttled(false)).toBeUndefined();
  });

  it('passes hashes of the tokens to the functions, and the tokens to their owner only', async () => {
    const { system, call } = await aSystem({ controllers: false, dataDirectory: join(folder, 'tokens') });
    const tokens = JSON.parse(String((await call('GET', '/tokens')).json()));
    expect(tokens).toMatchObject([
      { user: 'admin', groups: ['system:masters'] },
      { user: 'viewer', groups: ['nodekeeper:viewers'] },
      { user: 'fleet', groups: ['system:masters', 'nodekeeper:simulated-fleet'] },
    ]);
    expect(JSON.stringify(tokens)).not.toContain(system.adminToken);
    expect(readFileSync(system.kubeconfigPath, 'utf8')).toContain(`token: ${system.adminToken}`);
    for (const file of ['kubeconfig', 'tokens.json', 'ca.key']) {
      expect(statSync(join(system.dataDirectory, file)).mode & 0o777).toBe(0o600);
    }
  });

  it('feeds what passes the filter of a stream to its function, and gives up poison into the failure queue', async () => {
    const { system, call, lines } = await aSystem();
    await call('PUT', '/beats/n1');
    for (let beat = 0; beat < 5; beat += 1) await call('PUT', '/beats/n1');
    await call('PUT', '/beats/poison');
    await call('PUT', '/beats/n2?suspect=1');
    await expect
      .poll(async () => (await call('GET', '/items')).json(), { timeout: 10_000 })
      .toEqual(expect.arrayContaining(['changed-n1', 'changed-n2']));
    await expect
      .poll(async () => (await system.counters()).streams['changes'], { timeout: 10_000 })
      .toMatchObject({ read: 8, filtered: 5, delivered: 3, discarded: 1 });
    expect((await system.counters()).queues['Test-FailedChanges']).toMatchObject({ sent: 1, visible: 1 });
    expect(lines).toContain('local | a message could not be processed and is in Test-FailedChanges');
  });

  it('ticks at once; a tick sends the message of the next one with a delay, which wakes a function', async () => {
    const { system, call } = await aSystem();
    await expect
      .poll(async () => (await call('GET', '/items')).json(), { timeout: 10_000 })
      .toEqual(expect.arrayContaining(['tick-2', 'woken']));
    const counters = await system.counters();
    expect(counters.schedulesFired).toBeGreaterThan(0);
    expect(counters.queues['Test-TickQueue']?.sent).toBeGreaterThan(0);
  });

  it('stands still without controllers', async () => {
    const { system, call } = await aSystem({ controllers: false });
    await call('PUT', '/beats/n1');
    const counters = await system.counters();
    expect(counters.streams).toEqual({});
    expect(counters.schedulesFired).toBe(0);
    expect(counters.queues['Test-TickQueue']).toMatchObject({ sent: 0 });
  });

  it('keeps data, authority and tokens, and continues a stream where a crash left it', async () => {
    const dataDirectory = join(folder, 'kept');
    const first = await aSystem({ dataDirectory, controllers: false });
    await first.call('PUT', '/beats/before');
    await first.system.kill();
    const second = await aSystem({ dataDirectory });
    expect(second.system).toMatchObject({ caPem: first.system.caPem, adminToken: first.system.adminToken });
    await expect
      .poll(async () => (await second.call('GET', '/items')).json(), { timeout: 10_000 })
      .toContain('changed-before');
    await second.system.stop();
    const third = await aSystem({ dataDirectory });
    await third.call('PUT', '/beats/after');
    await expect
      .poll(async () => (await third.call('GET', '/items')).json(), { timeout: 10_000 })
      .toContain('changed-after');
    expect((await third.system.counters()).streams['changes']).toMatchObject({ read: 1 });
  });

  it('keeps running while the disk of its data directory refuses writes, and stores its positions once it accepts them', async () => {
    const dataDirectory = join(folder, 'full');
    const { call, lines } = await aSystem({ dataDirectory });
    // Stands for a full disk: the file that is written first cannot be opened.
    const blocked = join(dataDirectory, 'positions.json.new');
    rmSync(blocked, { force: true });
    mkdirSync(blocked);
    await call('PUT', '/beats/while-full');
    await expect
      .poll(() => lines.join('\n'), { timeout: 10_000 })
      .toMatch(/local \| positions\.json cannot be written/);
    expect((await call('GET', '/echo')).status).toBe(200);
    rmSync(blocked, { recursive: true });
    await expect.poll(() => lines, { timeout: 10_000 }).toContain('local | positions.json is written again');
  });

  it('keeps every file of a data directory for its owner', async () => {
    const dataDirectory = join(folder, 'private');
    const { system, call } = await aSystem({ dataDirectory });
    await call('PUT', '/beats/n1');
    await expect.poll(() => existsSync(join(dataDirectory, 'positions.json')), { timeout: 10_000 }).toBe(true);
    const open = readdirSync(dataDirectory, { recursive: true, encoding: 'utf8' }).filter(
      (name) => (statSync(join(dataDirectory, name)).mode & 0o077) !== 0,
    );
    expect(open).toEqual([]);
    await system.stop();
    writeFileSync(join(dataDirectory, 'data/nodekeeper.sqlite'), '');
    await expect(aSystem({ dataDirectory })).rejects.toThrow(/is not the database of a cluster: it has only 0 bytes/);
    expect(statSync(join(dataDirectory, 'data/nodekeeper.sqlite')).size).toBe(0);
  });

  it('says in one line what keeps it from starting, and leaves nothing behind', async () => {
    const port = await busyPort();
    await expect(aSystem({ port })).rejects.toThrow(`port ${port} is in use: choose another with --port`);
    await expect(aSystem({ assemblyDirectory: join(folder, 'nowhere') })).rejects.toThrow(
      /manifest\.json does not exist/,
    );
    await expect(aSystem({ dynamodbEndpoint: 'http://127.0.0.1:9' })).rejects.toThrow(
      /no DynamoDB answers at http:\/\/127\.0\.0\.1:9/,
    );
    await expect(aSystem({ policyFile: join(folder, 'none.yaml') })).rejects.toThrow(/none\.yaml does not exist/);
    const odd = {
      ...TEMPLATE,
      Resources: {
        ...TEMPLATE.Resources,
        Beats: { ...table(true), Properties: { TableName: { 'Fn::ImportValue': 'x' } } },
      },
    };
    const assembly = writeAssembly(join(folder, 'odd'), odd);
    await expect(aSystem({ assemblyDirectory: assembly })).rejects.toThrow(
      'template: Beats (AWS::DynamoDB::Table).TableName: Fn::ImportValue is not supported here',
    );
    const dataDirectory = join(folder, 'shared');
    await aSystem({ dataDirectory });
    await expect(aSystem({ dataDirectory })).rejects.toThrow(/the data directory is in use by process/);
  });
});

async function busyPort(): Promise<number> {
  const server = createServer();
  const port = await listenOnLoopback(server);
  onTestFinished(() => void server.close());
  return port;
}
