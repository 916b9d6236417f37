/** The tables of a deployed stack, by its outputs. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import { describeStack, outputPrefixOf, StackError } from '../../shared/aws/cloudformation/stack-outputs.ts';
import type { AwsCredentials } from '../../shared/aws/connection.ts';
import { dynamoDbClient } from '../../shared/aws/dynamodb-client.ts';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { defined } from '../../shared/defined.ts';
import { StartError } from '../../shared/host/start-error.ts';
import type { ItemStore, TableName } from '../../shared/store/item-store.ts';

/** A deployed stack, and the cluster in it. */
export interface StackName {
  readonly region: string;
  readonly stack: string;
  /** Absent: the only cluster of the stack. */
  readonly clusterId: string | undefined;
}

export interface DeployedTables {
  readonly items: ItemStore;
  readonly client: DynamoDBClient;
  readonly clusterId: string;
  readonly tables: Readonly<Record<TableName, string>>;
  /** Base URL of the API that the stack serves. */
  readonly endpoint: string;
  close(): void;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** One process serves many requests at once. */
const SOCKETS_MAX = 128;

/** @throws StartError with one line */
export async function openDeployedTables(
  { region, stack, clusterId: wanted }: StackName,
  environment: Environment,
): Promise<DeployedTables> {
  const credentialProvider = defaultProvider() as () => Promise<AwsCredentials>;
  const credentials = await credentialsOf(credentialProvider);
  const { outputs, prefix } = await outputsOf({ region, stack, wanted }, credentials, environment);
  const output = (name: string): string => {
    const value = outputs.get(`${prefix}${name}`);
    if (value !== undefined) return value;
    throw new StartError(`the stack ${stack} has no output ${prefix}${name}: deploy this release first`);
  };
  const tables = { health: output('HealthTable'), objects: output('ObjectsTable'), control: output('ControlTable') };
  const endpoint = environment['AWS_ENDPOINT_URL_DYNAMODB'];
  const client = dynamoDbClient({
    ...{ region, credentials, credentialProvider, socketsMax: SOCKETS_MAX },
    ...defined({ endpoint }),
  });
  return {
    items: dynamoDbItemStore({ client, tables }),
    client,
    clusterId: output('ClusterId'),
    tables,
    endpoint: output('Endpoint'),
    close: () => client.destroy(),
  };
}

async function credentialsOf(provider: () => Promise<AwsCredentials>): Promise<AwsCredentials> {
  try {
    return await provider();
  } catch (cause) {
    throw new StartError(`no AWS credentials were found: ${(cause as Error).message}`, { cause });
  }
}

async function outputsOf(
  { region, stack, wanted }: { readonly region: string; readonly stack: string; readonly wanted: string | undefined },
  credentials: AwsCredentials,
  environment: Environment,
) {
  try {
    const endpoint = environment['AWS_ENDPOINT_URL_CLOUDFORMATION'];
    const { outputs } = await describeStack({ stackName: stack, region, credentials, endpoint });
    return { outputs, prefix: outputPrefixOf(outputs, wanted, stack) };
  } catch (cause) {
    if (!(cause instanceof StackError)) throw cause;
    throw new StartError(`${cause.message}: ${cause.next}`, { cause });
  }
}
