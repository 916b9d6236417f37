/**
 * What a cluster behind a fence answers instead of what was asked. While its rows are copied, reads are answered and
 * writes are refused. Once its new address is known, everything is answered with it: what is read here is of the past.
 */
import { MOVED_CODE, movedStatus } from '../agents/moved-cluster.ts';
import { type HttpRequest, type HttpResponse, statusResponse } from '../kubernetes/http.ts';
import { isHealthPath } from '../kubernetes/request.ts';
import { serviceUnavailable } from '../kubernetes/status.ts';
import type { ItemReader } from '../store/item-store.ts';
import { FENCE_KEY, type Fence, fenceOf } from '../store/move-rows.ts';

const RETRY_AFTER_SECONDS = 10;
const READS = new Set(['GET', 'HEAD']);

/** Undefined: the request is served. `isDraining`: the fence is being set. */
export function answerOfFence(
  { method, path }: Pick<HttpRequest, 'method' | 'path'>,
  { fence, isDraining }: { readonly fence: Fence | undefined; readonly isDraining: boolean },
): HttpResponse | undefined {
  if (fence?.address !== undefined && !isHealthPath(path)) {
    const body = JSON.stringify(movedStatus(fence.address));
    return { status: MOVED_CODE, headers: { 'content-type': 'application/json' }, body };
  }
  if ((fence === undefined && !isDraining) || READS.has(method)) return undefined;
  const { status } = serviceUnavailable('this cluster is being moved: writes are refused until it is open again', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
  return statusResponse(status);
}

/** How old a fence may be that was read. A process that starts reads it first. Milliseconds. */
const FENCE_LIVES_MS = 5_000;

type Serve = (request: HttpRequest) => Promise<HttpResponse>;

export interface FenceSource {
  readonly items: ItemReader;
  readonly nowMs: () => number;
}

/**
 * The fence of tables that others write: read with the first request, and again every few seconds. It stops no write
 * that began before, so functions are stopped while the rows are copied. Afterwards it sends clients to the new
 * address.
 */
export function fenceReader({ items, nowMs }: FenceSource): () => Promise<Fence | undefined> {
  let known: { readonly fence: Promise<Fence | undefined>; readonly readAtMs: number } | undefined;
  return () => {
    const atMs = nowMs();
    if (known !== undefined && Math.abs(atMs - known.readAtMs) < FENCE_LIVES_MS) return known.fence;
    const fence = items
      .get(FENCE_KEY, { consistent: false })
      .then(fenceOf)
      .catch(() => {
        // Tables that do not answer are reported by the request itself.
        known = undefined;
        return undefined;
      });
    known = { fence, readAtMs: atMs };
    return fence;
  };
}

/** Answers as `serve`, unless the tables are the source of a move. */
export function behindFence(serve: Serve, source: FenceSource): Serve {
  const fence = fenceReader(source);
  return async (request) => answerOfFence(request, { fence: await fence(), isDraining: false }) ?? serve(request);
}
