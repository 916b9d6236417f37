import { streamHandler } from '../../shared/aws/stream-handler.ts';
import { composeObjectStream } from './compose.ts';

export const handler = streamHandler(composeObjectStream(process.env));
