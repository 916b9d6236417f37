/** The handler of a function that only a table's stream invokes. */
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
import { log, logger } from '../observability/logger.ts';
import { publishMetrics } from '../observability/publish-metrics.ts';
import { handleStream } from './dynamodb-stream-records.ts';

export const streamHandler = (onRecords: Parameters<typeof handleStream>[2]) =>
  middy<DynamoDBStreamEvent, DynamoDBBatchResponse>()
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(publishMetrics())
    .handler((event) => handleStream(event, log, onRecords));
