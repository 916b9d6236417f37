/**
 * The time of DynamoDB, by the date of a response. The clock of this machine may be wrong, and the SDK corrects it only
 * for its signatures, and only from five minutes on.
 */
import { DescribeTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { StoreFault } from '../store/item-store.ts';
import { faultOf } from './dynamodb-request.ts';

/** Milliseconds, in whole seconds. @throws StoreFault */
export async function serviceTimeMs(client: DynamoDBClient, tableName: string): Promise<number> {
  const command = new DescribeTableCommand({ TableName: tableName });
  let dateMs = Number.NaN;
  command.middlewareStack.add(
    (next) => async (input) => {
      const answer = await next(input);
      const { headers } = (answer.response ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
      dateMs = Date.parse(headers?.['date'] ?? '');
      return answer;
    },
    { step: 'deserialize' },
  );
  try {
    await client.send(command);
  } catch (error) {
    throw faultOf(error);
  }
  if (Number.isNaN(dateMs)) throw new StoreFault('rejected', 'DynamoDB answered without a date', { retryable: false });
  return dateMs;
}
