/**
 * Wakes functions by asynchronous invocations: Lambda queues the event and answers at once.
 * Source: AWS Lambda API Reference, Invoke (InvocationType `Event`).
 */
import { InvokeCommand, LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda';
import { defined } from '../defined.ts';
import type { FailedWakeUp, Waker } from '../ticks/waker.ts';
import { type AwsConnection, awsConnectionFrom } from './connection.ts';
import { wakeUpEvent } from './wake-up-event.ts';

/** A tick does not wait longer for the answers. Milliseconds. */
const REQUEST_TIMEOUT_MS = 1_000;
const CONNECTION_TIMEOUT_MS = 500;
/** A wake-up that is sent twice acts once. */
const ATTEMPTS_MAX = 2;

/** @throws RangeError that names every missing variable at once */
export const lambdaConnectionFrom = (environment: Readonly<Record<string, string | undefined>>): AwsConnection =>
  awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_LAMBDA');

function lambdaClient({ region, endpoint, credentials }: AwsConnection): LambdaClient {
  const config: LambdaClientConfig = {
    region,
    credentials: { ...credentials },
    maxAttempts: ATTEMPTS_MAX,
    retryMode: 'standard',
    defaultsMode: 'standard',
    authSchemePreference: [],
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: async () => undefined,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
    ...defined({ endpoint }),
  };
  return new LambdaClient(config);
}

/** @param functionNames name of the deployed function, by its name in the cluster */
export function lambdaWaker(connection: AwsConnection, functionNames: Readonly<Record<string, string>>): Waker {
  const client = lambdaClient(connection);
  async function wakeOne(name: string, atMs: number): Promise<FailedWakeUp | undefined> {
    const functionName = functionNames[name];
    if (functionName === undefined) return { name, reason: 'the function is not deployed' };
    try {
      const Payload = JSON.stringify(wakeUpEvent(atMs));
      await client.send(new InvokeCommand({ FunctionName: functionName, InvocationType: 'Event', Payload }));
      return undefined;
    } catch (error) {
      return { name, reason: String(error) };
    }
  }
  return {
    async wake(names, atMs) {
      const outcomes = await Promise.all(names.map((name) => wakeOne(name, atMs)));
      return outcomes.filter((outcome) => outcome !== undefined);
    },
  };
}
