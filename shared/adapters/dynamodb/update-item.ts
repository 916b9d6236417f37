/** Conditional updates through the SDK and nothing else, so that a bundle holds no other command. */
import { type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { ItemUpdater } from '../../ports/item-store.ts';
import type { DynamoDbOptions } from './request.ts';
import { type UpdateSender, updateItem } from './update-request.ts';

export const sdkUpdateSender =
  (client: DynamoDBClient): UpdateSender =>
  (input) =>
    client.send(new UpdateItemCommand(input));

export function dynamoDbUpdater(options: DynamoDbOptions): ItemUpdater {
  const send = sdkUpdateSender(options.client);
  return { write: (write, wanted) => updateItem(send, options, write, wanted) };
}
