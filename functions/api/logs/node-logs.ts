/**
 * What an agent requests to answer `kubectl logs`. A node may use only the paths of its own name.
 *
 *   GET /apis/nodekeeper.dev/v1alpha1/nodelogs/<node>        its open requests
 *   PUT /apis/nodekeeper.dev/v1alpha1/nodelogs/<node>/<id>   a chunk: sender, sequence, data (gzip, base64), end
 *
 * Nothing here is an object: there is no discovery, and no other verb.
 */
import { authorize } from '../../../shared/access/authorize.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import { defined } from '../../../shared/defined.ts';
import { LOG_CHUNK_BYTES_MAX, type LogRequest } from '../../../shared/kinds/pods/log-request.ts';
import {
  type LogChunk,
  type LogEnd,
  logRequestsOf,
  putLogChunk,
} from '../../../shared/kinds/pods/log-request-store.ts';
import { type HttpRequest, type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { isJsonObject } from '../../../shared/kubernetes/json.ts';
import { NAME_LENGTH_MAX } from '../../../shared/kubernetes/kubernetes.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import { mediaTypeOf, readJson, refuseTooLarge } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';

/** Compressed output may be a little longer than the output. Bytes. */
const DATA_BYTES_MAX = LOG_CHUNK_BYTES_MAX + 1_024;
/** 100 MB of output in chunks of one byte would be more: the agent then ends. */
const SEQUENCE_MAX = 1_000_000;
const SENDER_CHARACTERS_MAX = 64;
const MESSAGE_CHARACTERS_MAX = 1_000;

export interface NodeLogCall {
  readonly user: UserInfo;
  readonly target: ResourceTarget;
  readonly request: HttpRequest;
  readonly nowMs: number;
}

export type AnswerNodeLogs = (call: NodeLogCall) => Promise<HttpResponse>;

export const answerNodeLogs =
  (items: ItemStore): AnswerNodeLogs =>
  async (call) => {
    const { target, request, nowMs } = call;
    refuseOthers(call);
    if (target.name === '' || target.namespace !== '' || isTooLong(target)) throw status.unknownPath();
    if (request.method === 'GET' && target.subresource === '') {
      const requests = await logRequestsOf(items, target.name, nowMs);
      return json(200, {
        kind: 'NodeLogRequestList',
        apiVersion: 'nodekeeper.dev/v1alpha1',
        items: requests.map(forAgent),
      });
    }
    if (request.method !== 'PUT' || target.subresource === '') throw status.methodNotAllowedHere();
    const chunk = chunkOf(request);
    const outcome = await putLogChunk(items, { nodeName: target.name, id: target.subresource }, chunk, nowMs);
    return json(200, { kind: 'NodeLogAnswer', apiVersion: 'nodekeeper.dev/v1alpha1', outcome });
  };

/** No request has such a name or id, and it may be longer than a key of the store. */
const isTooLong = ({ name, subresource }: ResourceTarget): boolean =>
  name.length > NAME_LENGTH_MAX || subresource.length > NAME_LENGTH_MAX;

/** The user who reads the log is not the business of the node. */
const forAgent = ({ id, podUid, container, options }: LogRequest) => ({ id, podUid, container, ...options });

/** The right to write is required to read, too: who reads logs is not for everyone who may read objects. */
function refuseOthers({ user, target }: NodeLogCall): void {
  const question = { ...target, verb: 'update', subresource: '' } as const;
  const access = authorize(user, question);
  if (access.allowed) return;
  const { namespace, name, subresource } = target;
  throw status.accessDenied(
    { user: user.username, verb: 'update', target, subresource, namespace, name },
    access.reason,
  );
}

/** @throws StatusError 400, 413 */
function chunkOf(request: HttpRequest): LogChunk & { readonly sender: string } {
  if (mediaTypeOf(request.headers) !== 'application/json') throw status.unsupportedMediaType(['application/json']);
  refuseTooLarge(request.body);
  const body = readJson(request.body).value;
  const { sender, sequence, data, end } = body;
  if (typeof sender !== 'string' || sender === '' || sender.length > SENDER_CHARACTERS_MAX) {
    throw status.badRequest(`sender must be a text of 1 to ${SENDER_CHARACTERS_MAX} characters`);
  }
  if (typeof sequence !== 'number' || !Number.isInteger(sequence) || sequence < 0 || sequence > SEQUENCE_MAX) {
    throw status.badRequest(`sequence must be a whole number from 0 to ${SEQUENCE_MAX}`);
  }
  if (data !== undefined && typeof data !== 'string') throw status.badRequest('data must be a text in base64');
  return { sender, sequence, ...defined({ data: bytesOf(data), end: endOf(end) }) };
}

function bytesOf(data: string | undefined): Uint8Array | undefined {
  if (data === undefined || data === '') return undefined;
  const bytes = Buffer.from(data, 'base64');
  if (bytes.length > DATA_BYTES_MAX) {
    throw status.requestEntityTooLarge(`a chunk may have ${DATA_BYTES_MAX} bytes, this one has ${bytes.length}`);
  }
  return bytes;
}

function endOf(end: unknown): LogEnd | undefined {
  if (end === undefined) return undefined;
  if (!isJsonObject(end)) throw status.badRequest('end must be an object');
  const { message } = end;
  if (message !== undefined && typeof message !== 'string') throw status.badRequest('end.message must be a text');
  return defined({ message: message?.slice(0, MESSAGE_CHARACTERS_MAX) });
}
