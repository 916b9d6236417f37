/**
 * `nodekeeper prove` against the emulation of AWS: every fact is true there, and each is found false once, when an
 * answer is another one. Stacks come from a stand-in of CloudFormation; their resources are those of the emulation.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulationContext, synthesise } from '../../aws-local/assembly/synthesise.ts';
import { type LocalSystem, startLocal } from '../../aws-local/runtime.ts';
import { awsCalls } from '../../cli/prove/aws-calls.ts';
import { awsStacks } from '../../cli/prove/aws-stacks.ts';
import type { Calls, Measuring } from '../../cli/prove/calls.ts';
import { FACTS } from '../../cli/prove/fact-list.ts';
import { REQUESTS_PER_SECOND } from '../../cli/prove/plan.ts';
import { proveCommand } from '../../cli/prove/prove.ts';
import type { Report } from '../../cli/prove/report.ts';
import { type StandInCloudFormation, startCloudFormation } from '../support/cloudformation.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const REGION = 'us-east-1';
const WINDOW_SECONDS = 3;

let folder: string;
let system: LocalSystem;
let cloudFormation: StandInCloudFormation;
let environment: Record<string, string>;
let measuring: Measuring;
let report: Report;

/** The assembly of the emulation, with the limits of requests that a run deploys. */
async function assemblyWithLimits(directory: string): Promise<string> {
  const context = emulationContext(1_000);
  const { directory: source } = await synthesise({ projectDirectory: ROOT, mode: 'auto', inputFiles: [], context });
  for (const name of readdirSync(source)) {
    if (name.endsWith('.json')) cpSync(join(source, name), join(directory, name));
    else symlinkSync(join(source, name), join(directory, name));
  }
  const file = readdirSync(directory).find((name) => name.endsWith('.template.json')) ?? '';
  const template = JSON.parse(readFileSync(join(directory, file), 'utf8')) as {
    Resources: Record<string, { Type: string; Properties: Record<string, unknown> }>;
  };
  for (const { Type, Properties } of Object.values(template.Resources)) {
    if (Type !== 'AWS::ApiGatewayV2::Stage') continue;
    Properties['DefaultRouteSettings'] = {
      ThrottlingRateLimit: REQUESTS_PER_SECOND,
      ThrottlingBurstLimit: 2 * REQUESTS_PER_SECOND,
    };
  }
  writeFileSync(join(directory, file), JSON.stringify(template));
  return directory;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nk-prove-e2e-'));
  mkdirSync(join(folder, 'assembly'));
  mkdirSync(join(folder, 'node_modules/aws-cdk/bin'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/aws-cdk/bin/cdk'), '');
  writeFileSync(join(folder, 'cdk.json'), '{}');
  const assemblyDirectory = await assemblyWithLimits(join(folder, 'assembly'));
  [system, cloudFormation] = await Promise.all([
    startLocal({ assemblyDirectory, print: () => {} }),
    startCloudFormation('local', REGION),
  ]);
  const { variables } = system.functions[0]!;
  environment = {
    ...Object.fromEntries(Object.entries(variables).filter(([name]) => name.startsWith('AWS_ENDPOINT_URL'))),
    AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url,
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: cloudFormation.url,
  };
  const [health = '', objects = '', control = ''] = ['Health', 'Objects', 'Control'].map((name) =>
    system.dynamodb.tableNames.find((table) => table.includes(name)),
  );
  const functions = Object.fromEntries(
    system.functions.map(({ plan }) => [`${plan.logicalId} AWS::Lambda::Function`, plan.functionName]),
  );
  cloudFormation.newStack = (name) => ({
    status: 'CREATE_COMPLETE',
    outputs: name.includes('Probe')
      ? { QueueUrl: 'https://sqs.us-east-1.amazonaws.com/000000000000/probe' }
      : { Endpoint: system.url, HealthTable: health, ObjectsTable: objects, ControlTable: control },
    resources: name.includes('Probe') ? {} : functions,
  });
  const output = join(folder, 'report.json');
  const io = { environment, nowMs: Date.now(), print: () => {} };
  const args = ['--region', REGION, '--yes', '--window', String(WINDOW_SECONDS), '--output', output];
  await proveCommand(args, io, {
    find: async () => ({ accessKeyId: 'local', secretAccessKey: 'local' }),
    stacksOf: (account, deployment) => ({
      ...awsStacks(account, deployment),
      deployCluster: async ({ name }) => void (await fetch(`${cloudFormation.url}/deploy?${name}`)),
    }),
    callsOf(account, cluster) {
      // The emulation was started with tokens of its own.
      const calls = awsCalls({ ...account, ca: system.caPem }, { ...cluster, token: system.adminToken });
      const tables = { health, objects, control };
      const named = (id: string): string =>
        functions[Object.keys(functions).find((key) => key.startsWith(id)) ?? ''] ?? '';
      measuring = {
        calls: { ...calls, pause: async (milliseconds) => void (await sleep(milliseconds)) },
        cluster: {
          tables,
          functions: { api: named('ClusterApiFunction'), watch: named('ClusterWatchStreamWatchFunction') },
          queueUrl: 'https://sqs.us-east-1.amazonaws.com/000000000000/probe',
        },
        suffix: 'again',
        windowSeconds: WINDOW_SECONDS,
      };
      return calls;
    },
    directory: folder,
    sleep: async () => {},
    interrupted: () => new Promise(() => {}),
  }).catch((error: unknown) => console.log(String(error)));
  report = (JSON.parse(readFileSync(output, 'utf8')) as { report: Report }).report;
}, 240_000);

afterAll(async () => {
  await system?.stop();
  await cloudFormation?.close();
  rmSync(folder, { recursive: true, force: true });
});

it.each(FACTS)('$id is true', ({ id }) => {
  const { verdict, reason, measured } = report.facts.find((fact) => fact.id === id)!;
  expect({ verdict, reason, measured }).toMatchObject({ verdict: 'true' });
});

it('leaves nothing', () => {
  expect(report.left).toEqual([]);
  expect([...cloudFormation.stacks.keys(), ...cloudFormation.logGroups]).toEqual([]);
});

type Falsify = (calls: Calls) => Partial<Calls>;

/** Answers of one action of DynamoDB become others. */
const dynamodb =
  (action: string, changed: (body: Record<string, unknown>, status: number) => object, status = 200): Falsify =>
  (calls) => ({
    async json(service, called, input) {
      const answer = await calls.json(service, called, input);
      if (called !== action) return answer;
      return { status, body: { ...answer.body, ...changed({ ...answer.body }, answer.status) } };
    },
  });
const units = (changed: (CapacityUnits: number) => number, action: string): Falsify =>
  dynamodb(action, ({ ConsumedCapacity: consumed }) => ({
    ConsumedCapacity: [consumed]
      .flat()
      .map((one) => ({ CapacityUnits: changed(Number((one as { CapacityUnits: number }).CapacityUnits)) })),
  }));
const accepting = (action: string): Falsify =>
  dynamodb(action, () => ({ __type: undefined, CancellationReasons: undefined }));
const ec2 =
  (status: number, text: string): Falsify =>
  () => ({ ec2: async () => ({ status, text }) });

/** Each fact's answer in a world in which it is false. */
const FALSE: Readonly<Record<string, Falsify>> = {
  'dynamodb-write-unit': units((one) => one + 1, 'UpdateItem'),
  'dynamodb-transaction-units': units((one) => one / 2, 'TransactWriteItems'),
  'dynamodb-one-winner': accepting('UpdateItem'),
  'dynamodb-condition-item': dynamodb('UpdateItem', () => ({ Item: undefined }), 400),
  'dynamodb-transaction-conflict': accepting('TransactWriteItems'),
  'dynamodb-write-conflict': accepting('UpdateItem'),
  'dynamodb-cancellation-reasons': dynamodb('TransactWriteItems', () => ({ CancellationReasons: [] }), 400),
  'dynamodb-item-size': accepting('PutItem'),
  'dynamodb-transaction-size': accepting('TransactWriteItems'),
  'dynamodb-query-page': dynamodb('Query', () => ({ Count: 4, LastEvaluatedKey: undefined })),
  'dynamodb-expired-item': dynamodb('GetItem', () => ({ Item: undefined })),
  'ec2-unknown-id': ec2(200, '<reservationSet/>'),
  'ec2-malformed-id': ec2(200, '<reservationSet/>'),
  'ec2-unknown-in-filter': ec2(400, '<Code>InvalidInstanceID.NotFound</Code>'),
  'ec2-filter-values': ec2(200, '<reservationSet/>'),
  'ec2-ids-and-pages': ec2(200, '<reservationSet/>'),
};

describe('where a fact is false', () => {
  it('has a false world for each fact', () => {
    expect(Object.keys(FALSE)).toEqual(FACTS.map(({ id }) => id));
  });

  it.each(FACTS)('$id is found false', async (fact) => {
    const { calls } = measuring;
    const found = await fact.prove({ ...measuring, calls: { ...calls, ...FALSE[fact.id]?.(calls) }, suffix: fact.id });
    expect(found).toMatchObject({ verdict: 'false' });
  });
});
