import { streamHandler } from '../../shared/aws/stream-handler.ts';
import { composeHealthStream } from './compose.ts';

export const handler = streamHandler(composeHealthStream(process.env));
