import { streamHandler } from '../stream-handler.ts';
import { composeHealthStream } from './compose.ts';

export const handler = streamHandler(composeHealthStream(process.env));
