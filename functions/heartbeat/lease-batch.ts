/**
 * A batch of heartbeats from a relay: POST of up to 100 items (docs/decisions/0040). Each item passes through the same
 * code as a heartbeat of its own: its token is checked, its Lease is updated under its own condition, and it has an
 * answer of its own. What is wrong with one item is the answer to that item alone.
 *
 * A batch that is killed half-way has stored some heartbeats and acknowledged none. Their machines send them again.
 */

import type { StartTimeLimit } from '../../shared/clock.ts';
import {
  isLeaseBatchPath,
  LEASE_BATCH_API_VERSION,
  LEASE_BATCH_BYTES_MAX,
  LEASE_BATCH_ITEMS_MAX,
  LEASE_BATCH_KIND,
  type LeaseBatchItem,
  PREFER_NEWS,
} from '../../shared/fleet/nodes/lease-batch.ts';
import { type HttpRequest, type HttpResponse, json, statusResponse } from '../../shared/kubernetes/http.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import { mediaTypeOf, readJson, refuseTooLarge } from '../../shared/kubernetes/request-body.ts';
import type { KubeStatus } from '../../shared/kubernetes/status.ts';
import * as status from '../../shared/kubernetes/status.ts';

/** Updates at a time: half the connections to the table. */
const ITEMS_AT_ONCE = 16;
/**
 * Items that would start later are answered 503, and their machines send a heartbeat of their own. Milliseconds after
 * the batch arrived. A batch of 100 needs 0.9 s of the CPU time that Lambda provides for this memory.
 */
const LAST_START_MS = 2_300;
/**
 * The batch is then answered. A relay waits 2.8 s, and one slow item needs up to 6 s: without this limit all machines
 * of the batch would send stored heartbeats again. Milliseconds after the batch arrived.
 */
const ANSWER_MS = 2_500;

/**
 * Longest answer to an item. The answer to a heartbeat has some 600 bytes. A Status with thousands of causes would make
 * the answer to the batch longer than the 6 MB that a function may return, and all items would be without an answer.
 * Bytes.
 */
const ANSWER_BYTES_MAX = 8_192;
/** The length to which the message of a longer answer is cut. A character has at most 6 bytes in JSON. */
const MESSAGE_CHARACTERS_MAX = 1_000;

export interface BatchContext {
  /** When the batch arrived: the check of its sender may last seconds. Epoch milliseconds. */
  readonly arrivedAtMs: number;
  readonly nowMs: () => number;
  readonly startTimeLimit?: StartTimeLimit;
  /** Whether the token of a further item is checked. */
  readonly mayCheck: () => boolean;
  /** The token of an item was refused. */
  readonly onRefused: () => void;
  /** So many different Leases were renewed. */
  readonly onRenewed: (leases: number) => void;
  /** Serves one heartbeat. Never rejects. */
  readonly beat: (request: HttpRequest) => Promise<HttpResponse>;
  /** For the answer: the URL of this function, where it has one. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** @throws StatusError 400, 413, 415 or 422 for a request that is no batch */
export async function serveBatch(request: HttpRequest, context: BatchContext): Promise<HttpResponse> {
  const items = itemsOf(request);
  const untilMs = context.arrivedAtMs + LAST_START_MS;
  const answers: (HttpResponse | undefined)[] = items.map(() => undefined);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const unserved = context.nowMs() > untilMs ? lateAnswer() : context.mayCheck() ? undefined : uncheckedAnswer();
      const answered = unserved ?? (await answerTo(items[index], index, request, context));
      if (answered.status === 401) context.onRefused();
      answers[index] = answered;
    }
  };
  const limit = context.startTimeLimit?.(Math.max(0, context.arrivedAtMs + ANSWER_MS - context.nowMs()));
  const all = Promise.all(Array.from({ length: Math.min(ITEMS_AT_ONCE, items.length) }, worker));
  await (limit === undefined ? all : Promise.race([all, limit.reached]));
  limit?.cancel();
  context.onRenewed(renewedIn(items, answers));
  const complete = answers.map((each) => each ?? slowAnswer());
  return { ...json(200, undefined), body: bodyOf(complete, context.annotations) };
}

/** Different ones: a batch of a hundred heartbeats of one node is one node's. */
const renewedIn = (items: readonly unknown[], answers: readonly (HttpResponse | undefined)[]): number =>
  new Set(items.filter((_, index) => answers[index]?.status === 200).map((item) => (item as LeaseBatchItem).path)).size;

const slowAnswer = (): HttpResponse =>
  statusResponse(
    status.serviceUnavailable('the heartbeat took too long, it may be stored', { retryAfterSeconds: 1 }).status,
  );

const lateAnswer = (): HttpResponse =>
  statusResponse(
    status.serviceUnavailable('the batch took too long, this heartbeat was not stored', { retryAfterSeconds: 1 })
      .status,
  );

const uncheckedAnswer = (): HttpResponse =>
  statusResponse(
    status.serviceUnavailable('too many tokens of this relay were refused, this heartbeat was not stored', {
      retryAfterSeconds: 60,
    }).status,
  );

function itemsOf(request: HttpRequest): readonly unknown[] {
  refuseTooLarge(request.body, LEASE_BATCH_BYTES_MAX);
  const mediaType = mediaTypeOf(request.headers);
  if (mediaType !== '' && mediaType !== 'application/json') throw status.unsupportedMediaType(['application/json']);
  const { apiVersion, kind, items } = readJson(request.body).value;
  if (apiVersion !== LEASE_BATCH_API_VERSION || kind !== LEASE_BATCH_KIND) {
    const found = `apiVersion ${JSON.stringify(apiVersion)} and kind ${JSON.stringify(kind)}`;
    throw status.badRequest(`${found}: expected ${LEASE_BATCH_API_VERSION} and ${LEASE_BATCH_KIND}`);
  }
  if (!Array.isArray(items) || items.length === 0) {
    throw status.unprocessable(`${LEASE_BATCH_KIND} is invalid: items: Required value: a list of 1 to 100 heartbeats`);
  }
  if (items.length > LEASE_BATCH_ITEMS_MAX) {
    throw status.requestEntityTooLarge(`items: ${items.length}: limit is ${LEASE_BATCH_ITEMS_MAX} items`);
  }
  return items;
}

async function answerTo(
  item: unknown,
  index: number,
  batch: HttpRequest,
  { beat }: BatchContext,
): Promise<HttpResponse> {
  const complaint = complaintAbout(item);
  if (complaint !== undefined) return statusResponse(status.badRequest(`items[${index}]${complaint}`).status);
  const { method, path, token, body } = item as LeaseBatchItem;
  return beat({
    method,
    path,
    query: new URLSearchParams(),
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': method === 'PUT' ? 'application/json' : 'application/merge-patch+json',
      prefer: PREFER_NEWS,
    },
    body: Buffer.from(body, 'utf8'),
    sourceIp: batch.sourceIp,
  });
}

/** Field, value and what was expected; never the token. */
function complaintAbout(item: unknown): string | undefined {
  if (!isJsonObject(item)) return ': expected an object';
  const { method, path } = item;
  if (typeof path === 'string' && isLeaseBatchPath(path)) return '.path: a batch must not contain a batch';
  if (method !== 'PUT' && method !== 'PATCH') return `.method: ${JSON.stringify(method)}: expected PUT or PATCH`;
  for (const field of ['path', 'token', 'body'] as const) {
    if (typeof item[field] !== 'string') return `.${field}: expected text`;
  }
  return undefined;
}

/** The bodies are JSON already. They are not parsed again. */
function bodyOf(answers: readonly HttpResponse[], annotations: BatchContext['annotations']): string {
  const items = answers.map(({ status: code, headers, body }) => {
    const retryAfter = headers['retry-after'];
    const wait = retryAfter === undefined ? '' : `"retryAfterSeconds":${Number(retryAfter)},`;
    return `{"status":${code},${wait}"body":${withinBytes(String(body))}}`;
  });
  const metadata = Object.keys(annotations).length === 0 ? '' : `"metadata":${JSON.stringify({ annotations })},`;
  const type = `"apiVersion":"${LEASE_BATCH_API_VERSION}","kind":"${LEASE_BATCH_KIND}"`;
  return `{${type},${metadata}"items":[${items.join(',')}]}`;
}

/** The answer, or its Status without the details. */
function withinBytes(body: string): string {
  if (Buffer.byteLength(body) <= ANSWER_BYTES_MAX) return body;
  const { kind, apiVersion, reason, code, message = '' } = JSON.parse(body) as Partial<KubeStatus>;
  const shortened = `${message.slice(0, MESSAGE_CHARACTERS_MAX)} …`;
  return JSON.stringify({ kind, apiVersion, metadata: {}, status: 'Failure', message: shortened, reason, code });
}
