/** `nodekeeper serve --store dynamodb`: two processes over the same tables, in the embedded engine. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { type StandInCloudFormation, startCloudFormation } from '../support/cloudformation.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { until } from '../support/until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CLI = join(ROOT, 'cli/bin/nodekeeper.ts');
const REGION = 'eu-central-1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const STACK = ['--store', 'dynamodb', '--region', REGION, '--stack', 'Cluster'];

describe('nodekeeper serve --store dynamodb', { timeout: 60_000 }, () => {
  let directory: string;
  let engine: TestEngine;
  let cloudFormation: StandInCloudFormation;
  let environment: NodeJS.ProcessEnv;
  const children: ChildProcess[] = [];
  let first: ApiClient;
  let second: ApiClient;

  async function serve(name: string): Promise<ApiClient> {
    const data = join(directory, name);
    const args = [CLI, 'serve', ...STACK, '--data', data, '--port', '0'];
    const child = spawn(process.execPath, args, { cwd: ROOT, env: environment });
    children.push(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    const serving = () => /serves (https:\/\/\S+)/.exec(output)?.[1];
    const url = await until(serving, { withinMs: 30_000, what: 'the address' }).catch((error: unknown) => {
      throw new Error(output, { cause: error });
    });
    const { admin } = JSON.parse(readFileSync(join(data, 'tokens.json'), 'utf8')) as { admin: string };
    return createApiClient({ url, ca: join(data, 'ca.pem'), token: admin, connectionsMax: 8, timeoutMs: 30_000 });
  }

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nk-tables-'));
    [engine, cloudFormation] = await Promise.all([startEngine(), startCloudFormation('local', REGION)]);
    const { health, objects, control } = engine.tables;
    const tables = { HealthTable: health, ObjectsTable: objects, ControlTable: control };
    const outputs = { ...tables, ClusterId: 'west', Endpoint: 'https://api.example' };
    cloudFormation.stacks.set('Cluster', { status: 'UPDATE_COMPLETE', outputs });
    cloudFormation.stacks.set('Old', { status: 'UPDATE_COMPLETE', outputs: { ClusterId: 'west' } });
    environment = {
      ...process.env,
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
      AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url,
    };
    [first, second] = await Promise.all([serve('a'), serve('b')]);
  }, 60_000);

  afterAll(async () => {
    first?.close();
    second?.close();
    await Promise.all(
      children.map(
        (child) =>
          new Promise<void>((resolve) => {
            child.once('exit', () => resolve());
            child.kill('SIGTERM');
          }),
      ),
    );
    await cloudFormation?.close();
    await engine?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const create = (client: ApiClient, name: string) =>
    client.send({ method: 'POST', path: MAPS, body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } } });

  it('answers requests over the tables that another process writes as well', async () => {
    expect(await create(first, 'one')).toMatchObject({ status: 201 });
    expect(await second.send({ method: 'GET', path: `${MAPS}/one` })).toMatchObject({
      status: 200,
      body: { metadata: { name: 'one' } },
    });
  });

  it.each([
    ['of its own at once', () => second],
    ['of another process', () => first],
  ])('a watch delivers commits %s', async (_what, writer) => {
    const listed = await second.send({ method: 'GET', path: MAPS });
    const { resourceVersion } = (listed as { body: { metadata: { resourceVersion: string } } }).body.metadata;
    const name = `seen-by-${writer() === first ? 'poll' : 'commit'}`;
    // The client reads a whole answer: the watch ends after its only event.
    const path = `${MAPS}?watch=1&timeoutSeconds=4&resourceVersion=${resourceVersion}`;
    const watching = second.send({ method: 'GET', path });
    await create(writer(), name);
    expect(await watching).toMatchObject({ body: { type: 'ADDED', object: { metadata: { name } } } });
  });

  it('is ready, and does no work of the functions', async () => {
    expect(await first.send({ method: 'GET', path: '/readyz' })).toMatchObject({ status: 200 });

    const items = dynamoDbItemStore({ client: engine.client, tables: engine.tables });
    const { items: rows } = await items.scan({ table: 'control', segment: 0, segments: 1, consistent: true });
    expect(rows.filter(({ pk }) => pk === 'fleet' || String(pk).startsWith('tick#'))).toEqual([]);
  });

  const nodekeeper = (...args: readonly string[]): Promise<{ exitCode: number; output: string }> =>
    new Promise((resolve) => {
      const options = { cwd: ROOT, env: environment };
      execFile(process.execPath, [CLI, 'serve', ...args], options, (error, stdout, stderr) =>
        resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}`.trim() }),
      );
    });

  it('prints the policy that it needs', async () => {
    const { exitCode, output } = await nodekeeper(...STACK, '--print-policy');
    expect(exitCode).toBe(0);
    const { Statement: statements } = JSON.parse(output) as {
      Statement: readonly { Action: readonly string[]; Resource: string; Condition?: object }[];
    };
    expect(statements[0]).toEqual({
      Effect: 'Allow',
      Action: ['cloudformation:DescribeStacks'],
      Resource: `arn:aws:cloudformation:${REGION}:*:stack/Cluster/*`,
    });
    const onControl = statements.filter(({ Resource }) => Resource.endsWith(`table/${engine.tables.control}`));
    expect(onControl.length).toBeGreaterThan(3);
    for (const statement of onControl) expect(statement.Condition).toBeDefined();
    expect(JSON.stringify(statements)).not.toContain('dynamodb:*');
  });

  it('refuses a stack that it cannot use, in one line', async () => {
    for (const [stack, expected] of [
      ['None', 'no stack None in eu-central-1'],
      ['Old', 'the stack Old has no output HealthTable: deploy this release first'],
    ] as const) {
      const args = ['--store', 'dynamodb', '--region', REGION, '--stack', stack, '--ephemeral', '--port', '0'];
      const { exitCode, output } = await nodekeeper(...args);
      expect(exitCode).toBe(1);
      // A slow start says so on lines of their own.
      expect(output.split('\n').filter((line) => !line.endsWith(' s so far'))).toEqual([
        expect.stringContaining(expected),
      ]);
    }
  });
});
