/**
 * What a relay of heartbeats accepts, and what it makes of the answer to a batch (docs/relay.md). A relay cannot check
 * the tokens of machines: only the cluster has their keys. It passes on what it received, and the answer that it
 * received.
 */

import {
  LEASE_BATCH_API_VERSION,
  LEASE_BATCH_KIND,
  LEASE_BATCHES_PATH,
  type LeaseBatch,
  type LeaseBatchAnswer,
  type LeaseBatchAnswerItem,
  type LeaseBatchItem,
} from '../../shared/fleet/nodes/lease-batch.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { describeAnswer } from './kube-answer.ts';
import { COLLECT_AFTER_LEADER_MS, COLLECT_MS } from './relay-use.ts';

/** Longest body of a heartbeat. An agent sends some 700 bytes. Bytes. */
export const RELAYED_BODY_BYTES_MAX = 8_192;
/** For how long a relay may collect this heartbeat. Milliseconds. */
export const COLLECT_HEADER = 'x-nodekeeper-collect-ms';
/** Longest token, as on the server (shared/access/node-token.ts). */
const TOKEN_CHARACTERS_MAX = 2_048;

const METHOD_NOT_ALLOWED = 405;
const HEARTBEATS_ONLY = 'a relay serves heartbeats only: PUT or PATCH of a Lease';
const LEASE_PATH = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases\/[a-z0-9.-]{1,253}$/;
const BEARER = /^bearer +(\S+) *$/i;

/** The parts of a request that decide whether it is relayed. */
export interface ReceivedHeartbeat {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly authorization: string | undefined;
  /** The header `x-nodekeeper-collect-ms`. */
  readonly collect: string | undefined;
  readonly body: string;
}

export type RelayedRequest =
  | { readonly kind: 'heartbeat'; readonly item: LeaseBatchItem; readonly collectMs: number }
  | { readonly kind: 'refused'; readonly answer: LeaseBatchAnswerItem };

/** A relay forwards renewals of Leases and nothing else. */
export function relayedRequest({ method, target, authorization, collect, body }: ReceivedHeartbeat): RelayedRequest {
  if (!LEASE_PATH.test(target)) return refused(404, 'NotFound', 'a relay serves heartbeats only');
  if (method !== 'PUT' && method !== 'PATCH') {
    return refused(METHOD_NOT_ALLOWED, 'MethodNotAllowed', HEARTBEATS_ONLY);
  }
  const token = BEARER.exec(authorization ?? '')?.[1];
  if (token === undefined || token.length > TOKEN_CHARACTERS_MAX) return refused(401, 'Unauthorized', 'Unauthorized');
  return { kind: 'heartbeat', item: { method, path: target, token, body }, collectMs: collectMsOf(collect) };
}

/** Within bounds: anyone in the site can send it. */
const collectMsOf = (text = ''): number =>
  /^\d{1,9}$/.test(text) ? Math.min(COLLECT_MS, Math.max(COLLECT_AFTER_LEADER_MS, Number(text))) : COLLECT_MS;

/** Whether a server refused a read of a Lease as a relay does: a cluster asks for a token. */
export const refusesReads = ({ status, body }: { readonly status: number; readonly body: unknown }): boolean =>
  status === METHOD_NOT_ALLOWED && isJsonObject(body) && body['message'] === HEARTBEATS_ONLY;

const refused = (...status: Parameters<typeof statusAnswer>): RelayedRequest => ({
  kind: 'refused',
  answer: statusAnswer(...status),
});

/** An answer of the relay itself. */
export const statusAnswer = (code: number, reason: string, message: string): LeaseBatchAnswerItem => ({
  status: code,
  body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code },
});

/** Nothing was stored: the machine sends its heartbeat itself at once. */
export const notRelayed = (why: string): LeaseBatchAnswerItem =>
  statusAnswer(503, 'ServiceUnavailable', `the heartbeat was not relayed: ${why}`);

export function batchRequest(items: readonly LeaseBatchItem[]): KubeRequest {
  const body: LeaseBatch = { apiVersion: LEASE_BATCH_API_VERSION, kind: LEASE_BATCH_KIND, items };
  return { method: 'POST', path: LEASE_BATCHES_PATH, body };
}

export type BatchAnswers =
  | { readonly kind: 'answered'; readonly items: readonly LeaseBatchAnswerItem[] }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * The answers to these items. Anything but one answer for each item is a failure of the whole batch. A malformed answer
 * concerns its item alone: that machine sends its heartbeat itself.
 */
export function batchAnswers(answer: KubeAnswer, sent: readonly Pick<LeaseBatchItem, 'path'>[]): BatchAnswers {
  if (answer.kind === 'failed' || answer.status !== 200) return { kind: 'failed', why: describeAnswer(answer) };
  const { kind, items } = (answer.body ?? {}) as Partial<LeaseBatchAnswer>;
  const isComplete = kind === LEASE_BATCH_KIND && Array.isArray(items) && items.length === sent.length;
  if (!isComplete) return { kind: 'failed', why: 'the answer is not that to our batch' };
  const answers = items.map((item, index) => (isAnswerItem(item) ? completed(item, sent[index]!) : MALFORMED));
  return { kind: 'answered', items: answers };
}

/** The answer as the machine expects it: a Lease with its type and name. */
function completed(item: LeaseBatchAnswerItem, { path }: Pick<LeaseBatchItem, 'path'>): LeaseBatchAnswerItem {
  const { body } = item;
  if (item.status !== 200 || !isJsonObject(body) || !isJsonObject(body['metadata'])) return item;
  const metadata = { name: path.split('/').at(-1), namespace: LEASE_NAMESPACE, ...body['metadata'] };
  return { ...item, body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata } };
}

const MALFORMED = notRelayed('the answer of the cluster is malformed');

/** The server of the relay writes status, Retry-After and body as they are. */
const isAnswerItem = (item: unknown): item is LeaseBatchAnswerItem =>
  isJsonObject(item) &&
  isWholeNumber(item['status'], { least: 200, most: 599 }) &&
  (item['retryAfterSeconds'] === undefined || isWholeNumber(item['retryAfterSeconds'], { least: 0, most: 86_400 })) &&
  isJsonObject(item['body']);

const isWholeNumber = (value: unknown, { least, most }: { readonly least: number; readonly most: number }): boolean =>
  Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
