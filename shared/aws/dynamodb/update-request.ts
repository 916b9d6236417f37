/** One conditional UpdateItem, sent by the SDK's client (update-item.ts) or our own (lean-updater.ts). */
import type { UpdateItemCommandInput, UpdateItemCommandOutput } from '@aws-sdk/client-dynamodb';
import type { UpdateWrite, WriteOptions, WriteOutcome } from '../../store/item-store.ts';
import { itemFromWire, presentItem, toWire } from './attribute-value.ts';
import { faultOf, refusalOf } from './errors.ts';
import { conditionExpression, placeholderInput, placeholders, updateExpression } from './expression.ts';
import {
  consumedWanted,
  type RequestOptions,
  reportConsumed,
  reportRefused,
  sendPastConflicts,
  tableNameOf,
} from './request.ts';

/** The request of an update, in or out of a transaction. */
export function updateInput(write: UpdateWrite, tableName: string) {
  const holders = placeholders();
  const update = updateExpression(write, holders);
  const condition = write.when === undefined ? undefined : conditionExpression(write.when, holders);
  return {
    TableName: tableName,
    Key: { pk: toWire(write.key.pk), sk: toWire(write.key.sk) },
    ...(update === '' ? {} : { UpdateExpression: update }),
    ...(condition === undefined
      ? {}
      : { ConditionExpression: condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }),
    ...placeholderInput(holders),
  };
}

/** Sends one request. Throws errors with the service's name, and with `Item` if a condition failed. */
export type UpdateSender = (
  input: UpdateItemCommandInput,
) => Promise<Pick<UpdateItemCommandOutput, 'Attributes' | 'ConsumedCapacity'>>;

export async function updateItem(
  send: UpdateSender,
  options: RequestOptions,
  write: UpdateWrite,
  wanted: WriteOptions = {},
): Promise<WriteOutcome> {
  const input = {
    ...updateInput(write, tableNameOf(options, write.key.table)),
    ...consumedWanted(options),
    ...(wanted.returnItem ? { ReturnValues: 'ALL_NEW' as const } : {}),
    ...(wanted.returnPrevious ? { ReturnValues: 'ALL_OLD' as const } : {}),
  };
  options.onCall?.({ operation: 'UpdateItem', table: write.key.table, partitionKeys: [write.key.pk] });
  try {
    const answer = await sendPastConflicts(() => send(input), options);
    reportConsumed(options, 'UpdateItem', 'write', [answer.ConsumedCapacity]);
    if (answer.Attributes === undefined) return { kind: 'written' };
    if (wanted.returnItem) return { kind: 'written', item: itemFromWire(answer.Attributes) };
    const previous = wanted.returnPrevious ? presentItem(answer.Attributes) : undefined;
    return previous === undefined ? { kind: 'written' } : { kind: 'written', previous };
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw faultOf(error);
    reportRefused(options, write.key.table, 'UpdateItem', refusal.current);
    return refusal;
  }
}
