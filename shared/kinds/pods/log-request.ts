/**
 * One `kubectl logs` of one container, and how many of them may be open at once. A machine has no port for requests, so
 * the API stores the request, the agent of the node collects it and sends the output
 * (docs/decisions/0036-logs-without-a-port.md).
 */

/**
 * PodLogOptions of the core group, without the ones of TLS. Kubernetes API reference, "read log of the specified Pod".
 */
export interface LogOptions {
  readonly follow: boolean;
  /** The run before the current one. */
  readonly previous: boolean;
  /** Each line begins with its time, RFC 3339 in UTC. */
  readonly timestamps: boolean;
  readonly sinceSeconds?: number;
  /** Milliseconds since the Unix epoch. */
  readonly sinceTimeMs?: number;
  readonly tailLines?: number;
  readonly limitBytes?: number;
}

export interface LogRequest {
  readonly id: string;
  readonly nodeName: string;
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
  readonly container: string;
  /** Who reads it. */
  readonly user: string;
  readonly options: LogOptions;
}

/** Requests of one node that are open at once. */
export const LOGS_PER_NODE_MAX = 10;
/** Requests of the cluster that are open at once. */
export const LOGS_PER_CLUSTER_MAX = 100;
/** One user may open half of both, so another one finds room. `kubectl logs -l` opens five at once by default. */
export const LOGS_PER_USER = { ofNode: LOGS_PER_NODE_MAX / 2, ofCluster: LOGS_PER_CLUSTER_MAX / 2 } as const;
/** Bytes of output in one chunk, before compression. */
export const LOG_CHUNK_BYTES_MAX = 256 * 1024;
/** Bytes of one answer without `follow` and `limitBytes`. */
const ANSWER_BYTES_MAX = 10 * 1024 * 1024;
/** Bytes of one answer with `follow`. */
const FOLLOWED_BYTES_MAX = 100 * 1024 * 1024;

/** Bytes of one answer, and whether the reader chose them with `limitBytes`. */
export function bytesMaxOf({ follow, limitBytes }: LogOptions): { readonly bytes: number; readonly isChosen: boolean } {
  const bytes = follow ? FOLLOWED_BYTES_MAX : ANSWER_BYTES_MAX;
  return limitBytes !== undefined && limitBytes <= bytes
    ? { bytes: limitBytes, isChosen: true }
    : { bytes, isChosen: false };
}

export type LogAdmission =
  /** `replaced`: ids of older requests that end. */
  { readonly kind: 'admitted'; readonly replaced: readonly string[] } | { readonly kind: LogRefusal };

/** `user…`: the share of the user. */
export type LogRefusal = 'nodeAtLimit' | 'clusterAtLimit' | 'userAtLimitOfNode' | 'userAtLimitOfCluster';

/**
 * Whether a request may be opened besides `open`.
 *
 * A user follows a container once: a new request replaces the older one. A refusal would be wrong, because Lambda does
 * not report that the client of the older one has disconnected.
 */
export function admitLogRequest(request: LogRequest, open: readonly LogRequest[]): LogAdmission {
  const others = open.filter(({ id }) => id !== request.id);
  const replaced = others.filter((other) => isSameFollower(request, other)).map(({ id }) => id);
  const left = others.filter(({ id }) => !replaced.includes(id));
  const onNode = left.filter(({ nodeName }) => nodeName === request.nodeName);
  const isOwn = ({ user }: LogRequest): boolean => user === request.user;
  if (onNode.filter(isOwn).length >= LOGS_PER_USER.ofNode) return { kind: 'userAtLimitOfNode' };
  if (left.filter(isOwn).length >= LOGS_PER_USER.ofCluster) return { kind: 'userAtLimitOfCluster' };
  if (left.length >= LOGS_PER_CLUSTER_MAX) return { kind: 'clusterAtLimit' };
  return onNode.length >= LOGS_PER_NODE_MAX ? { kind: 'nodeAtLimit' } : { kind: 'admitted', replaced };
}

const isSameFollower = (request: LogRequest, other: LogRequest): boolean =>
  request.options.follow &&
  other.options.follow &&
  request.user === other.user &&
  request.podUid === other.podUid &&
  request.container === other.container;
