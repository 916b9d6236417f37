import type { LambdaFunctionURLEvent } from 'aws-lambda';
import { requestOfUrl, streamAnswer } from '../../shared/adapters/http-api/event.ts';
import { composeWatch } from './compose.ts';

/** Reserved to send the last line. Milliseconds. */
const RESERVE_MS = 5_000;
const watch = composeWatch(process.env);

export const handler = awslambda.streamifyResponse(async (event: LambdaFunctionURLEvent, stream, context) => {
  const deadlineMs = Date.now() + context.getRemainingTimeInMillis() - RESERVE_MS;
  await streamAnswer(await watch(requestOfUrl(event), deadlineMs), stream);
});
