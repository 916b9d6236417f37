/**
 * The DynamoDB client as our processes use it: everything the SDK would look up for itself (credential chain, shared
 * config files, instance metadata) is given, and everything that waits has a bound.
 *
 * Bundles replace `@aws-sdk/credential-provider-node` by no-credential-chain.ts and take the packages' `module` entry;
 * together that is 196 KB instead of 526 KB for one command.
 */

import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { defined } from '../../domain/defined.ts';
import { type AwsConnection, awsConnectionFrom } from '../aws-connection/connection.ts';

export interface DynamoDbClientOptions extends AwsConnection {
  /** Sends of one request at most, the first included. */
  readonly maxAttempts?: number;
  /** Sockets at most; a Lambda of one request at a time needs one for each item it reads in parallel. */
  readonly socketsMax?: number;
  /** Time to connect. Milliseconds. */
  readonly connectionTimeoutMs?: number;
  /** Time from sending a request to its whole answer. Milliseconds. */
  readonly requestTimeoutMs?: number;
}

export function dynamoDbClient(options: DynamoDbClientOptions): DynamoDBClient {
  const { region, endpoint, credentials, maxAttempts = 3, socketsMax = 32 } = options;
  const agent = { keepAlive: true, maxSockets: socketsMax };
  const config: DynamoDBClientConfig = {
    region,
    credentials: { ...credentials },
    maxAttempts,
    retryMode: 'standard',
    defaultsMode: 'standard',
    accountIdEndpointMode: 'disabled',
    authSchemePreference: [],
    endpointDiscoveryEnabled: false,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: async () => undefined,
    requestHandler: {
      connectionTimeout: options.connectionTimeoutMs ?? 1_000,
      requestTimeout: options.requestTimeoutMs ?? 3_000,
      throwOnRequestTimeout: true,
      httpAgent: agent,
      httpsAgent: agent,
    },
    ...defined({ endpoint }),
  };
  const client = new DynamoDBClient(config);
  // It copies every answer, value by value, for a logger that we do not give: a third of the CPU of reading a fleet.
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/**
 * The options a Lambda's environment holds.
 *
 * @throws RangeError that names every missing variable at once
 */
export const clientOptionsFrom = (environment: Readonly<Record<string, string | undefined>>): DynamoDbClientOptions =>
  awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_DYNAMODB');
