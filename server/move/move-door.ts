/**
 * What a cluster behind a fence answers instead of what was asked. While its rows are copied, reads are answered and writes
 * are refused. Once its new address is known, everything is answered with it: what is read here is of the past.
 */
import { MOVED_CODE, movedStatus } from '../../shared/agents/moved-cluster.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/request/http.ts';
import { statusResponse } from '../../shared/kubernetes/request/respond.ts';
import { serviceUnavailable } from '../../shared/kubernetes/status.ts';
import { isHealthPath } from '../health.ts';
import type { Fence } from './move-rows.ts';

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
