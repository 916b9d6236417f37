/** Requests for the output of containers, as the API lists them, and when their output is sent. */
import { bytesMaxOf, LOG_CHUNK_BYTES_MAX, type LogOptions } from '../../shared/kinds/pods/log-request.ts';
import { isJsonObject, type JsonObject } from '../../shared/kubernetes/json.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import type { LogQuery } from '../ports/pod-runtime.ts';

export interface RequestedLog {
  readonly id: string;
  readonly query: LogQuery;
}

/** Requests that are answered at once; the API opens no more for one node. */
export const LOGS_AT_ONCE_MAX = 10;
/** Without output, the node reports that it is alive. Milliseconds. */
const ALIVE_EVERY_MS = 5_000;
/** An answer without output is sent after this time. The client then sees that the log begins. Milliseconds. */
const FIRST_EMPTY_MS = 500;
/** The first output waits this long for more. Milliseconds. */
const FIRST_OUTPUT_MS = 100;
/** A request ends at the API after 15 minutes. Milliseconds. */
export const LOG_MS_MAX = 16 * 60_000;

const LIST_KIND = 'NodeLogRequestList';

export const logsPath = (nodeName: string): string =>
  `/apis/nodekeeper.dev/v1alpha1/nodelogs/${encodeURIComponent(nodeName)}`;

export const chunkPath = (nodeName: string, id: string): string => `${logsPath(nodeName)}/${encodeURIComponent(id)}`;

/** undefined: not the answer of the API. A malformed request is left out. */
export function requestedLogs(answer: KubeAnswer, nowMs: number): readonly RequestedLog[] | undefined {
  if (answer.kind !== 'answered' || answer.status !== 200 || !isJsonObject(answer.body)) return undefined;
  const { kind, items } = answer.body;
  if (kind !== LIST_KIND || !Array.isArray(items)) return undefined;
  return items.filter(isJsonObject).flatMap((item) => requestedLog(item, nowMs) ?? []);
}

function requestedLog(item: JsonObject, nowMs: number): RequestedLog | undefined {
  const { id, podUid, container } = item;
  if (typeof id !== 'string' || typeof podUid !== 'string' || typeof container !== 'string') return undefined;
  const number = (name: keyof LogOptions): number | undefined => {
    const value = item[name];
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  };
  const follow = item['follow'] === true;
  const limitBytes = number('limitBytes');
  const tailLines = number('tailLines');
  const sinceSeconds = number('sinceSeconds');
  const sinceMs = sinceSeconds === undefined ? number('sinceTimeMs') : nowMs - sinceSeconds * 1_000;
  const { bytes, isChosen } = bytesMaxOf({
    follow,
    previous: false,
    timestamps: false,
    ...(limitBytes === undefined ? {} : { limitBytes }),
  });
  return {
    id,
    query: {
      podUid,
      container,
      follow,
      previous: item['previous'] === true,
      timestamps: item['timestamps'] === true,
      // One byte more shows the API that the log is longer than its limit.
      limitBytes: isChosen ? bytes : bytes + 1,
      ...(tailLines === undefined ? {} : { tailLines }),
      ...(sinceMs === undefined ? {} : { sinceMs }),
    },
  };
}

/** What became of a chunk. `unclear`: it is sent again. */
export type ChunkAnswer = 'stored' | 'notOpened' | 'ended' | 'unclear';

export function chunkAnswer(answer: KubeAnswer): ChunkAnswer {
  if (answer.kind === 'failed') return 'unclear';
  const { status, body } = answer;
  if (status === 429 || status >= 500) return 'unclear';
  const outcome = status === 200 && isJsonObject(body) ? body['outcome'] : undefined;
  return outcome === 'stored' || outcome === 'notOpened' ? outcome : 'ended';
}

export interface ChunkTiming {
  /** When the request with the last chunk was sent, or the answer was begun. Monotonic milliseconds. */
  readonly sentMs: number;
  readonly hasSent: boolean;
  /** Output that was read and not sent. `complete`: a full chunk, or the end of the log. */
  readonly unsent: 'none' | 'some' | 'complete';
  /** Bytes of the last chunk. */
  readonly lastBytes: number;
  /** Logs that are sent at once. */
  readonly logs: number;
}

/**
 * When the next chunk is due; without output it only says that the node is alive. The API accepts 10 requests per
 * second of a node, all logs together, and 1 MB per second of a log. Monotonic milliseconds.
 */
export function chunkDueMs({ sentMs, hasSent, unsent, lastBytes, logs }: ChunkTiming): number {
  if (!hasSent) {
    if (unsent === 'complete') return sentMs;
    return sentMs + (unsent === 'some' ? FIRST_OUTPUT_MS : FIRST_EMPTY_MS);
  }
  if (unsent === 'none') return sentMs + ALIVE_EVERY_MS;
  // A full chunk means that more output waits.
  const leastMs = unsent === 'complete' || lastBytes === LOG_CHUNK_BYTES_MAX ? 250 : 500;
  return sentMs + Math.max(leastMs, 150 * logs);
}
