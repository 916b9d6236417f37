/**
 * Requests for logs and the output that answers them, in the `control` table.
 *
 *   pk `log-requests` sk `<node>#<id>`      the request, untilMs, reader, sender, seenMs, ttl
 *   pk `log-chunks#<id>` sk <sequence, 8 digits>   data (gzip), end, ttl
 *
 * The API puts a request. The streaming function opens it, reads its chunks and deletes both. The agent lists the
 * requests of its node and puts chunks. If the request does not exist any more, the agent stops. What a killed function
 * leaves has no reader, and expires.
 *
 * Cost of a request: 3 write units, and two reads of the open requests. Of a chunk: 1 write unit for the request, and
 * for each KB of compressed output one to write and one to delete.
 */
import { defined } from '../../defined.ts';
import { COUNTERS, rowExists } from '../../fleet/nodes/health.ts';
import type { Condition, Item, ItemKey, ItemStore, UpdateWrite } from '../../store/item-store.ts';
import { all, any, healthKey, is, lacks } from '../../store/layout.ts';
import { admitLogRequest, type LogRefusal, type LogRequest } from './log-request.ts';

const REQUESTS = 'log-requests';
/** Pages of the requests. A request has at most some 2 KB, so one page holds all that may be open. */
const PAGES_MAX = 10;
/** Pages of the chunks that are left when a stream ends. */
const LEFT_PAGES_MAX = 100;
/** Chunks in one read: one page of the store has 1 MB. */
const CHUNKS_PER_READ = 4;
/** Expired rows are kept this long at least. Seconds. */
const KEPT_SECONDS = 600;
/** From the redirect of a client to its request at the streaming function. Milliseconds. */
const OPEN_WITHIN_MS = 60_000;
/** The clock of another process may be late by less. Milliseconds. */
const CLOCK_DIFFERENCE_MS = 60_000;
/** Expired requests that one new request removes. More than one: then their number cannot grow. */
const REMOVED_MAX = 25;

export interface LogEnd {
  /** Why there is no output, or no more. Absent: the log ended. */
  readonly message?: string;
}

export interface LogChunk {
  /** From 0, without gaps. */
  readonly sequence: number;
  /** Compressed by gzip. Absent from an end without output. */
  readonly data?: Uint8Array;
  /** Set on the last chunk. */
  readonly end?: LogEnd;
}

export type LogCreation = { readonly kind: 'created' | LogRefusal };

/** `notOpened`: the reader has not connected yet. `ended`: there is no reader any more. */
export type ChunkOutcome = 'stored' | 'notOpened' | 'ended';

const requestKey = ({ nodeName, id }: Pick<LogRequest, 'nodeName' | 'id'>): ItemKey => ({
  table: 'control',
  pk: REQUESTS,
  sk: `${nodeName}#${id}`,
});

const chunkPartition = (id: string): string => `log-chunks#${id}`;
const chunkKey = (id: string, sequence: number): ItemKey => ({
  table: 'control',
  pk: chunkPartition(id),
  sk: String(sequence).padStart(8, '0'),
});

const ttlOf = (untilMs: number): number => Math.ceil(untilMs / 1_000) + KEPT_SECONDS;

type Items = Pick<ItemStore, 'get' | 'query' | 'write'>;

/** A log of the node is requested: the response to its next beat reports it. Refused if the node has no row. */
export const logsRequested = (nodeName: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  add: { [COUNTERS.logsVersion.name]: 1 },
  when: rowExists,
});

/**
 * Stores a request within the limits, and ends the older ones that it replaces. It also removes expired ones: TTL may
 * take days, and every new request would read them.
 */
export async function createLogRequest(
  items: Pick<ItemStore, 'query' | 'write'>,
  request: LogRequest,
  nowMs: number,
): Promise<LogCreation> {
  const { open, expired } = await readRequests(items, nowMs);
  await Promise.all(expired.slice(0, REMOVED_MAX).map((each) => deleteQuietly(items, requestKey(each))));
  const before = admitLogRequest(request, open);
  if (before.kind !== 'admitted') return before;
  const { id: _id, nodeName: _node, options, ...names } = request;
  const untilMs = nowMs + OPEN_WITHIN_MS;
  await items.write({
    kind: 'put',
    key: requestKey(request),
    item: { ...names, options: JSON.stringify(options), untilMs, seenMs: nowMs, ttl: ttlOf(untilMs) },
  });
  // Requests that start at once read the same open ones. Of those that stay, the last one to be stored has read all.
  const after = admitLogRequest(request, (await readRequests(items, nowMs)).open);
  if (after.kind !== 'admitted') {
    await items.write({ kind: 'delete', key: requestKey(request) });
    return after;
  }
  // Requests that start at once read each other: the one with the highest id stays.
  const replaced = after.replaced.filter((id) => before.replaced.includes(id) || id < request.id);
  for (const id of replaced) await items.write({ kind: 'delete', key: requestKey({ ...request, id }) });
  return { kind: 'created' };
}

/** The requests of a node that are open, for its agent. */
export const logRequestsOf = async (
  items: Pick<ItemStore, 'query'>,
  nodeName: string,
  nowMs: number,
): Promise<readonly LogRequest[]> => (await readRequests(items, nowMs, `${nodeName}#`)).open;

interface StoredRequests {
  readonly open: readonly LogRequest[];
  /** Expired by the clock of every process. */
  readonly expired: readonly LogRequest[];
}

async function readRequests(
  items: Pick<ItemStore, 'query'>,
  nowMs: number,
  beginsWith?: string,
): Promise<StoredRequests> {
  const open: LogRequest[] = [];
  const expired: LogRequest[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await items.query({
      table: 'control',
      pk: REQUESTS,
      consistent: true,
      ...defined({ after, beginsWith }),
    });
    for (const item of read.items) {
      const untilMs = Number(item['untilMs']);
      if (untilMs > nowMs) open.push(requestOf(item));
      else if (untilMs <= nowMs - CLOCK_DIFFERENCE_MS) expired.push(requestOf(item));
    }
    if (read.next === undefined) break;
    after = read.next;
  }
  return { open, expired };
}

function requestOf(item: Item): LogRequest {
  const [nodeName = '', id = ''] = String(item['sk']).split('#', 2);
  const text = (name: string): string => String(item[name] ?? '');
  return {
    id,
    nodeName,
    namespace: text('namespace'),
    podName: text('podName'),
    podUid: text('podUid'),
    container: text('container'),
    user: text('user'),
    options: JSON.parse(text('options')) as LogRequest['options'],
  };
}

const isOpenAt = (nowMs: number): Condition => ({ kind: 'compare', attribute: 'untilMs', op: '>', value: nowMs });

export interface LogOpening extends Pick<LogRequest, 'nodeName' | 'id'> {
  /** Unique per connection. */
  readonly reader: string;
  readonly nowMs: number;
  /** When the stream ends at the latest. Epoch milliseconds. */
  readonly untilMs: number;
}

/** Opens a request for its one reader. undefined: it expired, was replaced, or has been opened before. */
export async function openLogRequest(
  items: Pick<ItemStore, 'write'>,
  { nodeName, id, reader, nowMs, untilMs }: LogOpening,
): Promise<LogRequest | undefined> {
  const outcome = await items.write(
    {
      kind: 'update',
      key: requestKey({ nodeName, id }),
      set: { reader, untilMs, ttl: ttlOf(untilMs) },
      // The second part holds if the store repeats this write, because its answer was lost.
      when: all(isOpenAt(nowMs), any(lacks('reader'), is('reader', reader))),
    },
    { returnItem: true },
  );
  return outcome.kind === 'written' && outcome.item !== undefined ? requestOf(outcome.item) : undefined;
}

/** When the agent last sent something. Epoch milliseconds; undefined: the request was replaced. */
export async function logSeenMs(
  items: Pick<ItemStore, 'get'>,
  request: Pick<LogRequest, 'nodeName' | 'id'>,
): Promise<number | undefined> {
  const item = await items.get(requestKey(request), { consistent: false });
  return item === undefined ? undefined : Number(item['seenMs'] ?? 0);
}

/**
 * Stores a chunk, or only that the agent is alive. A chunk that is sent twice is stored once. `sender`: the process of
 * the agent. Another process of it, after a restart, would begin again in the middle of the stream.
 */
export async function putLogChunk(
  items: Pick<ItemStore, 'write'>,
  request: Pick<LogRequest, 'nodeName' | 'id'>,
  { sequence, data, end, sender }: LogChunk & { readonly sender: string },
  nowMs: number,
): Promise<ChunkOutcome> {
  const isOpened: Condition = { kind: 'has', attribute: 'reader' };
  const seen = await items.write({
    kind: 'update',
    key: requestKey(request),
    set: { seenMs: nowMs, sender },
    // The first chunk may be sent before the reader connects. The others wait, so an unread request stores one.
    when: all(isOpenAt(nowMs), any(lacks('sender'), is('sender', sender)), ...(sequence === 0 ? [] : [isOpened])),
  });
  if (seen.kind === 'refused') {
    const { current } = seen;
    if (current === undefined || Number(current['untilMs']) <= nowMs) return 'ended';
    return current['sender'] === undefined || current['sender'] === sender ? 'notOpened' : 'ended';
  }
  if (data === undefined && end === undefined) return 'stored';
  await items.write({
    kind: 'put',
    key: chunkKey(request.id, sequence),
    item: {
      ...defined({ data, end: end === undefined ? undefined : JSON.stringify(end) }),
      ttl: ttlOf(nowMs),
    },
  });
  return 'stored';
}

/** The chunks from `sequence` on, up to the first gap. They are deleted. */
export async function takeLogChunks(
  items: Pick<ItemStore, 'query' | 'write'>,
  id: string,
  sequence: number,
): Promise<readonly LogChunk[]> {
  const read = await items.query({
    table: 'control',
    pk: chunkPartition(id),
    consistent: false,
    limit: CHUNKS_PER_READ,
    ...(sequence === 0 ? {} : { after: chunkKey(id, sequence - 1).sk }),
  });
  const chunks: LogChunk[] = [];
  for (const { sk, data, end } of read.items) {
    if (Number(sk) !== sequence + chunks.length) break;
    chunks.push({
      sequence: Number(sk),
      ...defined({ data: data instanceof Uint8Array ? data : undefined }),
      ...(typeof end === 'string' ? { end: JSON.parse(end) as LogEnd } : {}),
    });
  }
  await Promise.all(chunks.map((chunk) => deleteQuietly(items, chunkKey(id, chunk.sequence))));
  return chunks;
}

/** Deletes the request and its chunks. Never rejects: what is left expires. */
export async function closeLogRequest(items: Items, request: Pick<LogRequest, 'nodeName' | 'id'>): Promise<void> {
  try {
    await items.write({ kind: 'delete', key: requestKey(request) });
    for (let page = 0; page < LEFT_PAGES_MAX; page += 1) {
      const left = await items.query({
        table: 'control',
        pk: chunkPartition(request.id),
        consistent: true,
        limit: CHUNKS_PER_READ,
        attributes: ['sk'],
      });
      if (left.items.length === 0) return;
      await Promise.all(left.items.map(({ sk }) => deleteQuietly(items, chunkKey(request.id, Number(sk)))));
    }
  } catch {
    // It expires.
  }
}

async function deleteQuietly(items: Pick<ItemStore, 'write'>, key: ItemKey): Promise<void> {
  try {
    await items.write({ kind: 'delete', key });
  } catch {
    // It expires.
  }
}
