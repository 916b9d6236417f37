import { messages } from '../../../shared/kinds/upstream.ts';
import type { ExpectedType } from '../../../shared/kubernetes/protobuf.ts';
import { type ReadBody, readObjectBody } from '../../../shared/kubernetes/request/body.ts';

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
): Promise<ReadBody> => readObjectBody(headers, body, { messages, expected, bytesMax });
