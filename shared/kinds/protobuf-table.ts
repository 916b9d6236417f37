import { protobufTable } from '../kubernetes/wire/protobuf-table.ts';
import { PROTOBUF_MESSAGES } from './generated/protobuf-messages.ts';

/** Every message that clients send: 50 KB, which only the API loads, with the first such body. */
export const ALL_MESSAGES = protobufTable(PROTOBUF_MESSAGES);
