/**
 * npm run health-shards -- [--stack NAME] [--cluster-id ID] [--region REGION] [--profile PROFILE] [--rows-per-second N]
 * npm run health-shards -- --table NAME --to 32|256 [--endpoint URL] …
 *
 * Moves the rows of the table `health` to the shards in which the deployed functions look first
 * (docs/operations/upgrade.md). With the outputs of a stack it knows the table and the number of shards. A stack of a
 * version that knows 32 shards only has no such outputs, and is refused: its functions would not find a moved row.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  type FindCredentials,
  fromAws,
  regionOfEnvironment,
  regionOfProfile,
  requireCredentials,
  requireRegion,
} from '../../cli/aws-account.ts';
import { CommandError, type CommandIo } from '../../cli/command.ts';
import { outputPrefixOf } from '../../cli/kubeconfig-command.ts';
import { describeStack } from '../../cli/stack-outputs.ts';
import { dynamoDbClient } from '../../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { defined } from '../../shared/domain/defined.ts';
import { HEALTH_SHARDS_RULE, type HealthShards, healthShardsFrom } from '../../shared/domain/health-shards.ts';
import { type MoveResult, moveRows } from './move-rows.ts';

export const HEALTH_SHARDS_USAGE =
  'npm run health-shards -- [--stack NAME] [--cluster-id ID] [--region REGION] [--profile PROFILE]' +
  ' [--rows-per-second N] | --table NAME --to 32|256 [--endpoint URL]';

const STACK = 'Nodekeeper';
/** 30,000 rows in 150 s. A move costs 5 write units. */
const ROWS_PER_SECOND = 200;
const ROWS_PER_SECOND_MAX = 10_000;
/** A throttled request is repeated for some seconds. */
const ATTEMPTS_MAX = 8;
const REQUEST_TIMEOUT_MS = 10_000;

interface Target {
  readonly table: string;
  readonly to: HealthShards;
}

export async function healthShardsCommand(
  args: readonly string[],
  io: CommandIo,
  {
    find = fromAws,
    pause = sleep,
    nowMs = Date.now,
  }: { find?: FindCredentials; pause?: (ms: number) => Promise<void>; nowMs?: () => number } = {},
): Promise<void> {
  const { environment, print } = io;
  const { values } = parseArgs({
    args: [...args],
    options: {
      stack: { type: 'string' },
      'cluster-id': { type: 'string' },
      region: { type: 'string' },
      profile: { type: 'string' },
      table: { type: 'string' },
      to: { type: 'string' },
      endpoint: { type: 'string' },
      'rows-per-second': { type: 'string' },
    },
  });
  const rowsPerSecond = rowsPerSecondOf(values['rows-per-second']);
  const profile = values.profile ?? environment['AWS_PROFILE'];
  const region = requireRegion(
    values.region ?? regionOfEnvironment(environment) ?? regionOfProfile(profile, environment),
  );
  const credentials = await requireCredentials(profile, find);
  const target =
    values.table === undefined && values.to === undefined
      ? await deployedTarget({
          stackName: values.stack ?? STACK,
          clusterId: values['cluster-id'],
          region,
          credentials,
          endpoint: environment['AWS_ENDPOINT_URL_CLOUDFORMATION'],
        })
      : statedTarget(values.table, values.to);
  const endpoint = values.endpoint ?? environment['AWS_ENDPOINT_URL_DYNAMODB'];
  const connection = { region, credentials, maxAttempts: ATTEMPTS_MAX, requestTimeoutMs: REQUEST_TIMEOUT_MS };
  const client = dynamoDbClient({ ...connection, ...defined({ endpoint }) });
  try {
    const tables = { health: target.table };
    print(`moving the rows of ${target.table} to ${target.to} shards, at most ${rowsPerSecond} per second`);
    const result = await moveRows(dynamoDbItemStore({ client, tables, random: Math.random }), {
      to: target.to,
      rowsPerSecond,
      nowMs,
      pause: async (ms) => {
        if (ms > 10_000) print(`waiting ${Math.ceil(ms / 1_000)} s until the marks of moved rows can be deleted`);
        await pause(ms);
      },
      report: ({ moved, marksDeleted }) => print(`${moved} rows moved, ${marksDeleted} marks deleted`),
    });
    report(result, print);
  } finally {
    client.destroy();
  }
}

function rowsPerSecondOf(text: string | undefined): number {
  const value = text === undefined ? ROWS_PER_SECOND : Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= ROWS_PER_SECOND_MAX) return value;
  throw new CommandError(`--rows-per-second must be from 1 to ${ROWS_PER_SECOND_MAX}`, HEALTH_SHARDS_USAGE);
}

function statedTarget(table: string | undefined, shards: string | undefined): Target {
  const to = healthShardsFrom(shards ?? '');
  if (table === undefined || table === '') throw new CommandError('--table is missing', HEALTH_SHARDS_USAGE);
  if (to === undefined) throw new CommandError(`--to ${HEALTH_SHARDS_RULE}`, HEALTH_SHARDS_USAGE);
  return { table, to };
}

async function deployedTarget({
  clusterId,
  ...stack
}: Parameters<typeof describeStack>[0] & { readonly clusterId: string | undefined }): Promise<Target> {
  const { status, outputs } = await describeStack(stack);
  if (status.endsWith('_IN_PROGRESS')) {
    throw new CommandError(`the stack ${stack.stackName} is being changed: ${status}`, 'wait until it is complete');
  }
  const prefix = outputPrefixOf(outputs, clusterId, stack.stackName);
  const table = outputs.get(`${prefix}HealthTable`);
  const to = healthShardsFrom(outputs.get(`${prefix}HealthShards`) ?? '');
  if (table !== undefined && to !== undefined) return { table, to };
  throw new CommandError(
    `the stack ${stack.stackName} has no outputs HealthTable and HealthShards`,
    'deploy this version first: the functions of earlier versions do not find moved rows',
  );
}

function report(result: MoveResult, print: CommandIo['print']): void {
  if (result.kind === 'finished') {
    print('finished: every row is where the functions look first');
    return;
  }
  throw new CommandError(
    `${result.left} rows could not be moved, because they changed at each attempt`,
    'run the command again; moved rows stay moved',
  );
}
