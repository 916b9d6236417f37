import { streamHandler } from '../../shared/aws/lambda/stream-handler.ts';
import { composeObjectStream } from './compose.ts';

export const handler = streamHandler(composeObjectStream(process.env));
