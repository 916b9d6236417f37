import type { LambdaFunctionURLEvent } from 'aws-lambda';
import { requestOfUrl, streamAnswer, throwUnlessOfStream } from '../../shared/aws/http-event.ts';
import { meter } from '../../shared/observability/meter.ts';
import { composeWatch } from './compose.ts';

/** Reserved to send the last line. Milliseconds. */
const RESERVE_MS = 5_000;
const watch = composeWatch(process.env);
process.on('unhandledRejection', throwUnlessOfStream);

export const handler = awslambda.streamifyResponse(async (event: LambdaFunctionURLEvent, stream, context) => {
  const deadlineMs = Date.now() + context.getRemainingTimeInMillis() - RESERVE_MS;
  const answer = await watch(requestOfUrl(event), deadlineMs);
  meter.publish();
  await Promise.all([streamAnswer(answer, stream), answer.measure?.(`https://${event.requestContext.domainName}`)]);
});
