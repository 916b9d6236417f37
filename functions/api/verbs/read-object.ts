import type { ExpectedType } from '../../../shared/kubernetes/protobuf.ts';
import type { ProtobufTable } from '../../../shared/kubernetes/protobuf-table.ts';
import { type ReadBody, readObjectBody } from '../../../shared/kubernetes/request-body.ts';

/**
 * An object of any kind that clients send. `expected`: apiVersion and kind of the path.
 *
 * @throws StatusError 400, 413, 415
 */
export const readObject = (
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  expected?: ExpectedType,
  bytesMax?: number,
): Promise<ReadBody> => readObjectBody(headers, body, { messages: loadMessages, expected, bytesMax });

const loadMessages = async (): Promise<ProtobufTable> => (await import('../../../shared/kinds/messages.ts')).messages;
