import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FindCredentials } from '../../cli/aws-account.ts';
import { CommandError } from '../../cli/command.ts';
import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { FORMER_HEALTH_SHARDS, HEALTH_SHARDS } from '../../shared/domain/health-shards.ts';
import type { ItemStore } from '../../shared/ports/item-store.ts';
import { healthKeyIn } from '../../shared/store/health-row.ts';
import { type StandInCloudFormation, startCloudFormation } from '../../test/support/cloudformation.ts';
import { startEngine, type TestEngine } from '../../test/support/engine.ts';
import { healthShardsCommand } from './command.ts';

const SECRET = 'a-secret-key';
const REGION = 'eu-west-1';
const found: FindCredentials = async () => ({ accessKeyId: 'AKID', secretAccessKey: SECRET });

let engine: TestEngine;
let items: ItemStore;
let cloudFormation: StandInCloudFormation;
let lines: string[];
beforeAll(async () => {
  engine = await startEngine();
  items = dynamoDbItemStore({ client: engine.client, tables: engine.tables });
});
afterAll(() => engine.stop());
beforeEach(async () => {
  cloudFormation = await startCloudFormation(SECRET, REGION);
  lines = [];
});
afterEach(() => cloudFormation.close());

function run(...args: string[]): Promise<void> {
  const io = {
    environment: {
      AWS_REGION: REGION,
      AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url,
      AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
    },
    nowMs: 0,
    print: (line: string) => void lines.push(line),
  };
  let nowMs = 1_000;
  const pause = async (ms: number) => {
    nowMs += ms;
  };
  return healthShardsCommand(args, io, { find: found, pause, nowMs: () => nowMs });
}

const deployed = (outputs: Record<string, string>, status = 'UPDATE_COMPLETE') =>
  cloudFormation.stacks.set('Nodekeeper', { status, outputs });

describe('npm run health-shards', () => {
  it('moves the rows to the shards of the deployed functions, and back after they were deployed with the others', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `a-${index}`)
      .filter((name) => healthKeyIn(FORMER_HEALTH_SHARDS, name).pk !== healthKeyIn(HEALTH_SHARDS, name).pk)
      .slice(0, 4);
    for (const name of names) {
      await items.write({ kind: 'put', key: healthKeyIn(FORMER_HEALTH_SHARDS, name), item: { u: name, b: 1 } });
    }
    const places = (shards: typeof FORMER_HEALTH_SHARDS | typeof HEALTH_SHARDS) =>
      Promise.all(names.map(async (name) => (await items.get(healthKeyIn(shards, name), { consistent: true }))?.['u']));
    deployed({ ClusterId: 'edge', HealthTable: engine.tables.health, HealthShards: '256' });
    await run();
    expect(await places(HEALTH_SHARDS)).toEqual(names);
    expect(lines.at(0)).toBe(`moving the rows of ${engine.tables.health} to 256 shards, at most 200 per second`);
    expect(lines).toContain('4 rows moved, 0 marks deleted');
    expect(lines).toContain('4 rows moved, 4 marks deleted');
    expect(lines.at(-1)).toBe('finished: every row is where the functions look first');

    deployed({ EdgeClusterId: 'edge', EdgeHealthTable: engine.tables.health, EdgeHealthShards: '32' });
    await run('--cluster-id', 'edge');
    expect(await places(FORMER_HEALTH_SHARDS)).toEqual(names);

    await run('--table', engine.tables.health, '--to', '256', '--endpoint', engine.endpoint);
    expect(await places(HEALTH_SHARDS)).toEqual(names);
  });

  it.each([
    [{ ClusterId: 'edge' }, 'UPDATE_COMPLETE', 'has no outputs HealthTable and HealthShards'],
    [{ HealthTable: 't', HealthShards: '32' }, 'UPDATE_IN_PROGRESS', 'is being changed'],
  ])('refuses a stack with functions that may not find moved rows: %j, %s', async (outputs, status, message) => {
    deployed(outputs, status);
    await expect(run()).rejects.toThrow(message);
    await expect(run()).rejects.toBeInstanceOf(CommandError);
    expect(lines).toEqual([]);
  });

  it.each([
    [['--rows-per-second', '0'], '--rows-per-second must be from 1'],
    [['--to', '256'], '--table is missing'],
    [['--table', 't', '--to', '64'], '--to must be one of 32, 256'],
  ])('names what is wrong with %j', async (args, message) => {
    await expect(run(...args)).rejects.toThrow(message);
  });
});
