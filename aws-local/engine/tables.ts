import { isDeepStrictEqual } from 'node:util';
import { StartError } from '../../shared/host/start-error.ts';
import type { TablePlan } from '../assembly/plan.ts';
import { isObject } from '../assembly/template.ts';
import { type EngineClient, EngineError } from './client.ts';

/** The part of a table that the engine keeps. */
export type TableShape = Pick<TablePlan, 'tableName' | 'definition' | 'timeToLiveAttribute'>;

/**
 * Makes the tables of the plan. One that exists already, from an earlier start, must have the same keys, indexes and
 * stream: local data is not migrated.
 *
 * @returns the engine's stream ARN of every table that has a stream
 * @throws StartError when kept data does not fit
 */
export async function createTables(
  client: EngineClient,
  plans: readonly TableShape[],
): Promise<ReadonlyMap<string, string>> {
  const streams = new Map<string, string>();
  for (const plan of plans) {
    const description = await describe(client, plan.tableName);
    if (description === undefined) await create(client, plan);
    else requireSameShape(plan, description);
    const streamArn = (description ?? (await describe(client, plan.tableName)))?.['LatestStreamArn'];
    if (typeof streamArn === 'string') streams.set(plan.tableName, streamArn);
  }
  return streams;
}

async function describe(client: EngineClient, tableName: string): Promise<Record<string, unknown> | undefined> {
  try {
    const { Table: table } = await client.call('DynamoDB_20120810.DescribeTable', { TableName: tableName });
    return isObject(table) ? table : undefined;
  } catch (error) {
    if (error instanceof EngineError && error.code === 'ResourceNotFoundException') return undefined;
    throw error;
  }
}

async function create(client: EngineClient, plan: TableShape): Promise<void> {
  await client.call('DynamoDB_20120810.CreateTable', plan.definition);
  if (plan.timeToLiveAttribute === undefined) return;
  await client.call('DynamoDB_20120810.UpdateTimeToLive', {
    TableName: plan.tableName,
    TimeToLiveSpecification: { AttributeName: plan.timeToLiveAttribute, Enabled: true },
  });
}

function requireSameShape(plan: TableShape, description: Record<string, unknown>): void {
  if (!isDeepStrictEqual(shape(plan.definition), shape(description))) {
    throw new StartError(
      `the kept table ${plan.tableName} has other keys, indexes or stream than the template: move the data directory away, or use --ephemeral`,
    );
  }
}

function shape(table: Record<string, unknown>): unknown {
  const indexes = (name: string) =>
    (Array.isArray(table[name]) ? table[name] : [])
      .filter(isObject)
      .map((index) => [index['IndexName'], index['KeySchema']])
      .sort();
  const stream = table['StreamSpecification'];
  return [
    table['KeySchema'],
    indexes('GlobalSecondaryIndexes'),
    indexes('LocalSecondaryIndexes'),
    isObject(stream) ? stream['StreamViewType'] : undefined,
  ];
}
