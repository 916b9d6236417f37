/**
 * The tables of DynamoDB as source or destination of a move.
 *
 * Destination: new tables, on which no function works before a deployment names them (`restoredTablesFile`). So nothing
 * acts on half of a cluster, and a fresh stack may have rows of its own.
 *
 * Source: functions write without asking for a fence, because a heartbeat reads nothing. They must be stopped first.
 * Ticks and heartbeats show whether they are: a tick is at most a minute old while they run, and the copy is compared
 * with the tables after it was made.
 */

import { setTimeout as pause } from 'node:timers/promises';
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  ResourceInUseException,
  ResourceNotFoundException,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { serviceTimeMs } from '../../shared/aws/service-time.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../../shared/kinds/admission-policies/resource.ts';
import type { ItemStore, TableName } from '../../shared/store/item-store.ts';
import { TABLE_FEATURES, TTL_ATTRIBUTE } from '../../shared/store/layout.ts';
import { type DeployedTables, openDeployedTables, type StackName } from '../tables/deployed-tables.ts';
import { TABLES } from './copy-rows.ts';
import { type MoveDestination, MoveError, type MoveSource } from './move.ts';
import { tableSource } from './table-source.ts';

/** A table is made in seconds. */
const ACTIVE_POLLS_MAX = 120;
const ACTIVE_POLL_MS = 1_000;
/** Functions that run tick each minute at least. Milliseconds. */
const STOPPED_MS = 150_000;

type Environment = Readonly<Record<string, string | undefined>>;

export interface AwsSource {
  readonly source: MoveSource;
  readonly clusterId: string;
  close(): void;
}

/** @throws StartError */
export async function openAwsSource(stack: StackName, environment: Environment): Promise<AwsSource> {
  const { items, client, tables, clusterId, close } = await openDeployedTables(stack, environment);
  const requireStopped = async (): Promise<void> => {
    const { claimedAtMs } = await fleetStore(items).readState();
    if (claimedAtMs === undefined) return;
    // By a clock of this machine that is ahead, functions that work would have stopped.
    const idleMs = (await serviceTimeMs(client, tables.control)) - claimedAtMs;
    if (idleMs > STOPPED_MS) return;
    throw new MoveError(
      `the functions of ${stack.stack} worked ${Math.max(0, Math.round(idleMs / 1_000))} s ago: stop them, and run ` +
        `this again after ${STOPPED_MS / 1_000} s (docs/one-machine.md, "From and to AWS")`,
    );
  };
  return { source: tableSource(items, requireStopped), clusterId, close };
}

export interface AwsDestination {
  readonly destination: MoveDestination;
  /** Endpoint of the deployed stack, which serves the tables once it is deployed with them. */
  readonly endpoint: string;
  /** The content of `restoredTablesFile`. */
  readonly restoredTables: object;
  close(): void;
}

const UNSERVED = {
  resources: [VALIDATING_WEBHOOKS.resource, MUTATING_WEBHOOKS.resource],
  why: 'no webhook is called on AWS',
};

/** Makes the tables if they do not exist. @throws StartError */
export async function openAwsDestination(
  stack: StackName,
  { name, prefix, environment }: { readonly name: string; readonly prefix: string; readonly environment: Environment },
): Promise<AwsDestination> {
  const { client, endpoint, close } = await openDeployedTables(stack, environment);
  const names = Object.fromEntries(TABLES.map((table) => [table, `${prefix}-${table}`])) as DeployedTables['tables'];
  try {
    const described = await Promise.all(TABLES.map((table) => tableOf(client, table, names[table])));
    const restored = TABLES.map((table, index) => {
      const { TableArn: tableArn, LatestStreamArn: streamArn } = described[index]!;
      return [table, { tableArn, ...(TABLE_FEATURES[table].hasStream && { streamArn }) }];
    });
    const items: ItemStore = dynamoDbItemStore({ client, tables: names });
    return {
      destination: { name, items, unserved: UNSERVED, complete: () => expireAll(client, names) },
      endpoint,
      restoredTables: Object.fromEntries(restored),
      close,
    };
  } catch (cause) {
    close();
    if (cause instanceof StartError) throw cause;
    throw new StartError(`the tables ${prefix}-… cannot be made: ${(cause as Error).message}`, { cause });
  }
}

async function tableOf(client: DynamoDBClient, table: TableName, name: string): Promise<TableDescription> {
  if ((await describe(client, name)) === undefined) await create(client, table, name);
  for (let polls = 0; polls < ACTIVE_POLLS_MAX; polls += 1) {
    const found = await describe(client, name);
    if (found?.TableStatus === 'ACTIVE') return found;
    await pause(ACTIVE_POLL_MS);
  }
  throw new StartError(`the table ${name} did not become active`);
}

async function describe(client: DynamoDBClient, name: string): Promise<TableDescription | undefined> {
  try {
    return (await client.send(new DescribeTableCommand({ TableName: name }))).Table;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

/** Creates a table as the template has it, without point-in-time recovery, which an administrator chooses. */
async function create(client: DynamoDBClient, table: TableName, name: string): Promise<void> {
  try {
    await client.send(
      new CreateTableCommand({
        TableName: name,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: ['pk', 'sk'].map((key) => ({ AttributeName: key, AttributeType: 'S' as const })),
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
        DeletionProtectionEnabled: true,
        ...(TABLE_FEATURES[table].hasStream && {
          StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' as const },
        }),
      }),
    );
  } catch (error) {
    // Its response was lost, and it was sent again.
    if (!(error instanceof ResourceInUseException)) throw error;
  }
}

/**
 * Rows expire from here on. Not when a table is made: a command that was killed in between would leave it without, and
 * a table that was there may be of another program.
 */
async function expireAll(client: DynamoDBClient, names: DeployedTables['tables']): Promise<void> {
  for (const table of TABLES) {
    if (!TABLE_FEATURES[table].hasExpiry) continue;
    const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName: names[table] }));
    // A second request for it is an error.
    if (/^ENABL/.test(TimeToLiveDescription?.TimeToLiveStatus ?? '')) continue;
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: names[table],
        TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
      }),
    );
  }
}
