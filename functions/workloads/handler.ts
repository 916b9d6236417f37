import type { Context, DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
import { streamHandler } from '../../shared/aws/stream-handler.ts';
import { tickHandler } from '../../shared/aws/wake-up.ts';
import { composeWorkloads } from './compose.ts';

const { policy, tick, onRecords } = composeWorkloads(process.env);

const onTick = tickHandler(policy.nodeMonitorPeriodSeconds, tick);
const onStream = streamHandler(onRecords);

/** Receives records of the stream, wake-ups and sweeps. */
export async function handler(event: unknown, context: Context): Promise<DynamoDBBatchResponse | undefined> {
  if (isStreamEvent(event)) return onStream(event, context);
  await onTick(event, context);
  return undefined;
}

const isStreamEvent = (event: unknown): event is DynamoDBStreamEvent =>
  typeof event === 'object' && event !== null && Array.isArray((event as Partial<DynamoDBStreamEvent>).Records);
