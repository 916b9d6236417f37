/** Sends an update through the SDK; the heartbeat sends its own (lean-updater.ts). */
import { type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { UpdateSender } from './update-request.ts';

export const sdkUpdateSender =
  (client: DynamoDBClient): UpdateSender =>
  (input) =>
    client.send(new UpdateItemCommand(input));
