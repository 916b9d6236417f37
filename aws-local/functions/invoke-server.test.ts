import { LambdaClient, PutFunctionConcurrencyCommand } from '@aws-sdk/client-lambda';
import { afterEach, describe, expect, it } from 'vitest';
import { lambdaWaker } from '../../shared/aws/wake-up.ts';
import { startInvokeServer } from './invoke-server.ts';

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function aLambda(...known: string[]) {
  const events: unknown[] = [];
  const server = await startInvokeServer({
    put(name, event) {
      if (known.includes(name)) events.push([name, event]);
      return known.includes(name);
    },
  });
  stops.push(server.stop);
  const connection = {
    region: 'us-east-1',
    endpoint: server.endpoint,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  };
  return { events, connection };
}

it('refuses a reservation without a whole number of executions, and one of an unknown function', async () => {
  const reserved: unknown[] = [];
  const server = await startInvokeServer({
    put: () => false,
    reserve(name, executions) {
      if (name !== 'api') return 'notFound';
      reserved.push(executions);
      return 'reserved';
    },
  });
  stops.push(server.stop);
  const lambda = new LambdaClient({
    region: 'us-east-1',
    endpoint: server.endpoint,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  const reserve = (FunctionName: string, ReservedConcurrentExecutions: number | undefined) =>
    lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions })).then(
      () => 'reserved',
      ({ name }: Error) => name,
    );
  expect([await reserve('api', -1), await reserve('api', 0.5), await reserve('api', undefined)]).toEqual(
    Array(3).fill('InvalidParameterValueException'),
  );
  expect([await reserve('other', 1), await reserve('api', 0)]).toEqual(['ResourceNotFoundException', 'reserved']);
  expect(reserved).toEqual([0]);
});

describe('the wake-up of functions through Lambda', () => {
  it('is an asynchronous invocation with the time of the tick', async () => {
    const { events, connection } = await aLambda('stack-evictor', 'stack-pods');
    const waker = lambdaWaker(connection, { evictor: 'stack-evictor', 'pod-gc': 'stack-pods' });
    expect(await waker.wake(['evictor', 'pod-gc'], 5_000)).toEqual([]);
    expect(events).toEqual(
      expect.arrayContaining([
        ['stack-evictor', { wakeUpAtMs: 5_000 }],
        ['stack-pods', { wakeUpAtMs: 5_000 }],
      ]),
    );
  });

  it('reports the functions that could not be woken, and wakes the others', async () => {
    const { events, connection } = await aLambda('stack-evictor');
    const waker = lambdaWaker(connection, { evictor: 'stack-evictor', 'pod-gc': 'stack-pods' });
    const failed = await waker.wake(['pod-gc', 'unknown', 'evictor'], 0);
    expect(failed.map(({ name }) => name)).toEqual(['pod-gc', 'unknown']);
    expect(failed[0]?.reason).toContain('ResourceNotFoundException');
    expect(events).toHaveLength(1);
  });

  it('never rejects', async () => {
    const connection = {
      region: 'x',
      endpoint: 'http://127.0.0.1:9',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    };
    expect(await lambdaWaker(connection, { evictor: 'e' }).wake(['evictor'], 0)).toHaveLength(1);
  });
});
