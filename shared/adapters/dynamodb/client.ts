/**
 * The DynamoDB client as our processes use it: everything the SDK would look up for itself (credential chain, shared
 * config files, instance metadata) is given, and everything that waits has a bound.
 *
 * Bundles replace `@aws-sdk/credential-provider-node` by no-credential-chain.ts and take the packages' `module` entry;
 * together that is 196 KB instead of 526 KB for one command.
 */
import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';

export interface DynamoDbClientOptions {
  readonly region: string;
  /** Only for an engine of our own: AWS_ENDPOINT_URL_DYNAMODB. */
  readonly endpoint?: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
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
    ...(endpoint === undefined ? {} : { endpoint }),
  };
  const client = new DynamoDBClient(config);
  // It copies every answer, value by value, for a logger that we do not give: a third of the CPU of reading a fleet.
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/**
 * The options a Lambda's environment holds. Throws a RangeError that names every missing variable at once.
 */
export function clientOptionsFrom(environment: Readonly<Record<string, string | undefined>>): DynamoDbClientOptions {
  const names = ['AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;
  const missing = names.filter((name) => !environment[name]);
  if (missing.length > 0) throw new RangeError(`missing from the environment: ${missing.join(', ')}`);
  const sessionToken = environment['AWS_SESSION_TOKEN'];
  const endpoint = environment['AWS_ENDPOINT_URL_DYNAMODB'];
  return {
    region: environment['AWS_REGION']!,
    credentials: {
      accessKeyId: environment['AWS_ACCESS_KEY_ID']!,
      secretAccessKey: environment['AWS_SECRET_ACCESS_KEY']!,
      ...(sessionToken ? { sessionToken } : {}),
    },
    ...(endpoint ? { endpoint } : {}),
  };
}
