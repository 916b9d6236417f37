/** The handler of a function that only a table's stream invokes. */
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
import { handleStream } from '../shared/adapters/dynamodb/stream-records.ts';
import { log, logger } from '../shared/observability/logger.ts';
import { publishMetrics } from '../shared/observability/publish-metrics.ts';

export const streamHandler = (onRecords: Parameters<typeof handleStream>[2]) =>
  middy<DynamoDBStreamEvent, DynamoDBBatchResponse>()
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(publishMetrics())
    .handler((event) => handleStream(event, log, onRecords));
