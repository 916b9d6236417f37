/** The handler of a function that only a table's stream invokes. */

import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import type { Log } from '../observability/log.ts';
import { log, logger } from '../observability/logger.ts';
import { publishMetrics } from '../observability/meter.ts';
import type { Item } from '../store/item-store.ts';
import { itemFromWire, type WireItem } from './dynamodb-expression.ts';

export const streamHandler = (onRecords: Parameters<typeof handleStream>[2]) =>
  middy<DynamoDBStreamEvent, DynamoDBBatchResponse>()
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(publishMetrics())
    .handler((event) => handleStream(event, log, onRecords));

export interface StreamRecord {
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly key: { readonly pk: string; readonly sk: string };
  readonly oldImage?: Item;
  readonly newImage?: Item;
}

export function streamRecordOf({ eventName, dynamodb }: DynamoDBRecord): StreamRecord {
  const { pk, sk } = itemFromWire((dynamodb?.Keys ?? {}) as WireItem);
  return {
    type: eventName ?? 'MODIFY',
    key: { pk: String(pk), sk: String(sk) },
    ...(dynamodb?.OldImage === undefined ? {} : { oldImage: itemFromWire(dynamodb.OldImage as WireItem) }),
    ...(dynamodb?.NewImage === undefined ? {} : { newImage: itemFromWire(dynamodb.NewImage as WireItem) }),
  };
}

/**
 * Processes a batch. Lambda delivers again from the lowest record in the response, so the response names one. Later
 * records are then delivered twice.
 */
export async function handleStream(
  event: DynamoDBStreamEvent,
  log: Log,
  onRecords: (records: readonly StreamRecord[]) => Promise<{
    readonly failedFrom?: number;
    readonly faults: readonly unknown[];
    readonly postponed: readonly unknown[];
  }>,
): Promise<DynamoDBBatchResponse> {
  const outcome = await onRecords(event.Records.map(streamRecordOf));
  if (outcome.postponed.length > 0) {
    log.warn('works of stream records failed and are done later', {
      records: event.Records.length,
      error: outcome.postponed[0],
      faults: outcome.postponed.length,
    });
  }
  if (outcome.failedFrom === undefined) {
    if (outcome.faults.length > 0) {
      log.error('stream records were skipped', {
        records: event.Records.length,
        error: outcome.faults[0],
        faults: outcome.faults.length,
      });
    }
    return { batchItemFailures: [] };
  }
  const sequenceNumber = event.Records[outcome.failedFrom]?.dynamodb?.SequenceNumber ?? '';
  log.error('stream records could not be processed', {
    records: event.Records.length,
    failedFrom: sequenceNumber,
    error: outcome.faults[0],
    faults: outcome.faults.length,
  });
  return { batchItemFailures: [{ itemIdentifier: sequenceNumber }] };
}
