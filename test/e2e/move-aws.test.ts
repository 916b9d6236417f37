/**
 * `nodekeeper move` from a file to tables of DynamoDB and back, in the embedded engine. `serve --store dynamodb` stands
 * for the functions of the stack: it answers requests over the new tables.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateTableCommand, DescribeTimeToLiveCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { type StandInCloudFormation, startCloudFormation } from '../support/cloudformation.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { MovingMachine } from '../support/moving-machines.ts';
import { until } from '../support/until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CLI = join(ROOT, 'cli/bin/nodekeeper.ts');
const REGION = 'eu-central-1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const CREDENTIALS = ['ca.key', 'ca.pem', 'tokens.json', 'viewer-token'];
const MACHINES = 20;
const MOVED = { health: 'Cluster-moved-health', objects: 'Cluster-moved-objects', control: 'Cluster-moved-control' };

interface Served {
  readonly client: ApiClient;
  readonly url: string;
  readonly child: ChildProcess;
}

describe('nodekeeper move to AWS and back', { timeout: 180_000 }, () => {
  let directory: string;
  let engine: TestEngine;
  let cloudFormation: StandInCloudFormation;
  let environment: NodeJS.ProcessEnv;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nk-aws-'));
    [engine, cloudFormation] = await Promise.all([startEngine(), startCloudFormation('local', REGION)]);
    const outputsOf = ({ health, objects, control }: TestEngine['tables']) => ({
      status: 'UPDATE_COMPLETE',
      outputs: {
        ...{ HealthTable: health, ObjectsTable: objects, ControlTable: control },
        ...{ ClusterId: 'west', Endpoint: 'https://api.example' },
      },
    });
    cloudFormation.stacks.set('Cluster', outputsOf(engine.tables));
    // The same stack, deployed with the new tables.
    cloudFormation.stacks.set('Deployed', outputsOf(MOVED));
    environment = {
      ...process.env,
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
      AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url,
    };
  }, 60_000);

  afterAll(async () => {
    await Promise.all(children.map(ended));
    await cloudFormation?.close();
    await engine?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const ended = (child: ChildProcess): Promise<void> =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', () => resolve());
      child.kill('SIGTERM');
    });

  const nodekeeper = (...args: readonly string[]): Promise<{ exitCode: number; output: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [CLI, ...args], { cwd: ROOT, env: environment }, (error, stdout, stderr) =>
        resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}`.trim() }),
      );
    });

  async function serve(name: string, ...args: readonly string[]): Promise<Served> {
    const data = join(directory, name);
    const child = spawn(process.execPath, [CLI, 'serve', '--data', data, '--port', '0', ...args], {
      cwd: ROOT,
      env: environment,
    });
    children.push(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    const url = await until(() => /serves (https:\/\/\S+)/.exec(output)?.[1], {
      withinMs: 30_000,
      what: 'the address',
    }).catch((error: unknown) => {
      throw new Error(output, { cause: error });
    });
    const { admin: token } = JSON.parse(readFileSync(join(data, 'tokens.json'), 'utf8')) as { admin: string };
    const ca = join(data, 'ca.pem');
    return { client: createApiClient({ url, ca, token, timeoutMs: 30_000, connectionsMax: 8 }), url, child };
  }

  const create = async ({ client }: Served, name: string): Promise<unknown> => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
    const answer = await client.send({ method: 'POST', path: MAPS, body });
    return answer.kind === 'answered' ? answer.status : answer.cause;
  };
  const list = async ({ client }: Served): Promise<{ version: number; names: readonly string[] }> => {
    const answer = await client.send({ method: 'GET', path: MAPS });
    const { metadata, items } = (answer as { body: unknown }).body as {
      metadata: { resourceVersion: string };
      items: readonly { metadata: { name: string } }[];
    };
    return { version: Number(metadata.resourceVersion), names: items.map((item) => item.metadata.name) };
  };

  it('moves the rows there and back: nothing is lost, versions continue, machines follow', async () => {
    const a = join(directory, 'a');
    const aws = ['--region', REGION, '--stack', 'Cluster'];
    const first = await serve('a', '--cluster-id', 'west');
    for (let index = 0; index < 30; index += 1) expect(await create(first, `w${index}`)).toBe(201);
    const stop = new AbortController();
    const { admin } = JSON.parse(readFileSync(join(a, 'tokens.json'), 'utf8')) as { admin: string };
    const address = { endpoint: first.url, certificateAuthority: readFileSync(join(a, 'ca.pem'), 'utf8') };
    const machines = Array.from({ length: MACHINES }, (_, index) => new MovingMachine(`m${index}`, address, admin));
    for (const machine of machines) await machine.register();
    const beating = machines.map((machine) => machine.run(2_000, stop.signal));
    const before = await list(first);

    // A command was killed when it had made one of the tables.
    await engine.client.send(
      new CreateTableCommand({
        ...{ TableName: MOVED.control, BillingMode: 'PAY_PER_REQUEST' },
        AttributeDefinitions: ['pk', 'sk'].map((key) => ({ AttributeName: key, AttributeType: 'S' as const })),
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
      }),
    );
    const moved = await nodekeeper('move', '--from', a, '--to', 'aws', ...aws);
    expect(moved).toMatchObject({ exitCode: 0, output: expect.stringContaining('compared by their hashes') });
    expect(await create(first, 'refused')).toBe(503);
    for (const name of [MOVED.objects, MOVED.control]) {
      const { TimeToLiveDescription } = await engine.client.send(new DescribeTimeToLiveCommand({ TableName: name }));
      expect(TimeToLiveDescription, name).toMatchObject({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' });
    }
    // The tables of the stack have the keys of the directory here: this process stands for the stack.
    mkdirSync(join(directory, 'c'), { mode: 0o700 });
    for (const name of CREDENTIALS) copyFileSync(join(a, name), join(directory, 'c', name));
    const between = await serve('c', '--store', 'dynamodb', '--region', REGION, '--stack', 'Deployed');
    const open = ['--open', '--endpoint', between.url, '--authority', join(a, 'ca.pem')];
    const opened = await nodekeeper('move', '--from', a, '--to', 'aws', ...aws, ...open);
    expect(opened).toMatchObject({
      exitCode: 0,
      output: expect.stringContaining(`clients are sent to ${between.url}`),
    });
    const [, restored = ''] = /deploy:\n(\{[\s\S]*\n\})/.exec(opened.output) ?? [];
    expect(JSON.parse(restored)).toMatchObject({
      health: { tableArn: expect.stringContaining(MOVED.health), streamArn: expect.stringContaining('stream') },
      control: { tableArn: expect.stringContaining(MOVED.control) },
    });
    expect(await nodekeeper('move', '--from', a, '--to', 'aws', ...aws, '--abandon')).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining('was opened: it is the cluster now'),
    });
    await until(() => machines.every(({ at }) => at === between.url), { withinMs: 60_000, what: 'machines there' });
    const there = await list(between);
    expect(there.names).toEqual(before.names);
    expect(there.version).toBeGreaterThanOrEqual(before.version);
    expect(await create(between, 'there')).toBe(201);

    const back = ['--from', 'aws', '--region', REGION, '--stack', 'Deployed', '--to', join(directory, 'b')];
    // Its last tick was that of the file.
    expect(await nodekeeper('move', ...back)).toMatchObject({
      exitCode: 1,
      output: expect.stringMatching(/the functions of Deployed worked \d+ s ago: stop them/),
    });
    // The functions are stopped.
    await ended(between.child);
    const items = dynamoDbItemStore({ client: engine.client, tables: MOVED });
    const state = { table: 'control', pk: 'fleet', sk: 'state' } as const;
    await items.write({ kind: 'update', key: state, set: { at: Date.now() - 600_000 } });
    const returned = await nodekeeper('move', ...back);
    expect(returned).toMatchObject({ exitCode: 0, output: expect.stringContaining('--cluster-id west') });
    // They are started again, to send machines on.
    const stack = [
      '--store',
      'dynamodb',
      '--region',
      REGION,
      '--stack',
      'Deployed',
      '--port',
      new URL(between.url).port,
    ];
    const again = await serve('c', ...stack);
    expect(await create(again, 'refused')).toBe(503);
    for (const name of CREDENTIALS) copyFileSync(join(a, name), join(directory, 'b', name));
    const last = await serve('b', '--cluster-id', 'west');
    const announced = await nodekeeper('move', ...back, '--endpoint', last.url);
    expect(announced).toEqual({ exitCode: 0, output: `agents and clients are sent to ${last.url}` });
    await until(() => machines.every(({ at }) => at === last.url), { withinMs: 60_000, what: 'machines back' });
    const found = await list(last);
    expect(found.names).toEqual([...before.names, 'there'].toSorted());
    expect(found.version).toBeGreaterThan(there.version);
    expect(await create(last, 'last')).toBe(201);
    stop.abort();
    await Promise.all(beating);
    const events = await last.client.send({ method: 'GET', path: '/api/v1/events' });
    expect(JSON.stringify(events)).not.toContain('NodeNotReady');
  });

  it('refuses what it cannot do, in one line', async () => {
    const x = join(directory, 'x');
    for (const [args, expected] of [
      [['--from', 'aws', '--to', 'aws', '--region', REGION], 'one of --from and --to must be a file'],
      [['--from', 'aws', '--to', x], 'aws needs --region'],
      [['--from', 'aws', '--to', x, '--region', REGION, '--stack', 'None'], 'no stack None'],
      [['--from', x, '--to', `${x}2`, '--stack', 'S'], '--stack needs --from or --to aws'],
      [['--from', 'aws', '--to', x, '--region', REGION, '--open'], '--open needs --to aws'],
    ] as const) {
      const { exitCode, output } = await nodekeeper('move', ...args);
      expect({ args, exitCode, output }).toEqual({ args, exitCode: 1, output: expect.stringContaining(expected) });
      expect(output.split('\n'), output).toHaveLength(1);
    }
  });
});
