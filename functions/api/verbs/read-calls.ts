/** GET of one object and of a list. */
import { setImmediate as turn } from 'node:timers/promises';
import { type Call, type ReadDependencies, selectorsOf } from '../../../shared/api/call.ts';
import { listObjects, refuseLeft } from '../../../shared/api/resource-storage.ts';
import {
  acceptsGzip,
  compressedIfLarge,
  PLAIN_LIST_CHARACTERS_MAX,
  payloadBytes,
  RESPONSE_BYTES_MAX,
  shapeList,
  shapeObject,
} from '../../../shared/api/response-body.ts';
import { effectOf } from '../../../shared/kinds/effects.ts';
import { type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { checkListOptions, limitOf, refuseFutureVersion } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { refuseForeign } from '../admission/restrict-node.ts';

/** Length of the JSON of all objects in one response before compression. Characters. */
const COMPRESSED_LIST_MAX = 24_000_000;
/** Attempts while the encoded response is too large. Each attempt lists fewer objects. */
const FIT_ATTEMPTS_MAX = 8;
/** Share of the objects that would fit by average size, listed at the next attempt. */
const FIT_MARGIN = 0.9;

export async function get(dependencies: ReadDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  refuseFutureVersion(request.query, call.nowMs);
  const object = await dependencies.storageOf(descriptor).get(target.namespace, target.name);
  if (object === undefined) throw status.notFound(descriptor, target.name);
  refuseForeign(call, object);
  return json(200, shapeObject(descriptor, object, call.shape, call.nowMs));
}

export function list(dependencies: ReadDependencies, call: Call): Promise<HttpResponse> {
  const { inTurn = (_user, work) => work() } = dependencies;
  return inTurn(call.user.username, () => listed(dependencies, call));
}

async function listed(dependencies: ReadDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  checkListOptions(request.query, call.nowMs);
  let limit = limitOf(request.query);
  const { listWarning } = effectOf(descriptor) ?? {};
  const headers = warningHeaders(listWarning === undefined ? [] : [listWarning]);
  for (let attempt = 1; attempt <= FIT_ATTEMPTS_MAX; attempt += 1) {
    const page = await listObjects(dependencies.storageOf(descriptor), descriptor, {
      namespace: target.namespace,
      limit,
      charactersMax: acceptsGzip(request) ? COMPRESSED_LIST_MAX : PLAIN_LIST_CHARACTERS_MAX,
      continueToken: request.query.get('continue') ?? '',
      ...selectorsOf(descriptor, request.query),
      nowMs: call.nowMs,
      gone: request.gone,
    });
    const answer = await compressedIfLarge(
      request,
      await jsonList(200, shapeList(descriptor, page, call.shape, call.nowMs), headers, request.gone),
      dependencies.gzip,
    );
    const bytes = payloadBytes(answer);
    if (bytes <= RESPONSE_BYTES_MAX) return answer;
    limit = Math.max(1, Math.floor((page.items.length * RESPONSE_BYTES_MAX * FIT_MARGIN) / bytes));
  }
  throw status.internalError('a list does not fit into one response');
}

/** What one turn of the event loop writes of a list. Characters. */
const TURN_CHARACTERS = 250_000;

/** `json` for a list, which ends with its array. A process serves others between the parts of a long one. */
export async function jsonList(
  code: number,
  list: object,
  headers: Readonly<Record<string, string>> = {},
  gone?: AbortSignal,
): Promise<HttpResponse> {
  const [name, items] = Object.entries(list).at(-1) as [string, readonly unknown[]];
  const texts: string[] = [];
  let characters = 0;
  for (const item of items) {
    const text = JSON.stringify(item);
    texts.push(text);
    characters += text.length;
    if (characters < TURN_CHARACTERS) continue;
    characters = 0;
    await turn();
    refuseLeft(gone);
  }
  const { body, ...empty } = json(code, { ...list, [name]: [] }, headers);
  return { ...empty, body: `${body.slice(0, -2)}${texts.join(',')}]}` };
}
