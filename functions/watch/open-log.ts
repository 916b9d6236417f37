/** A redirected `pods/log` in the streaming function: opens the stored request for its one reader. */

import type { Call } from '../../shared/api/call.ts';
import { LOG_PARAMETER, type PodLog } from '../../shared/api/logs/pod-log.ts';
import type { RandomSource } from '../../shared/clock.ts';
import { closeLogRequest, openLogRequest } from '../../shared/kinds/pods/log-request-store.ts';
import type { ResourceTarget } from '../../shared/kubernetes/request.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { awaitFirstChunk, type LogSource, logOutput } from './log-stream.ts';
import type { FindRefusal } from './revocation.ts';

export interface LogOpening {
  readonly log: PodLog;
  readonly call: Call;
  /** When the last byte must be sent. Epoch milliseconds. */
  readonly deadlineMs: number;
  readonly findRefusal: FindRefusal;
}

export const isPodLog = ({ group, resource, subresource }: ResourceTarget): boolean =>
  group === '' && resource === 'pods' && subresource === 'log';

/** Resolves when the node has answered. @throws StatusError 400, 401, 410, 504 */
export async function openLog(
  source: LogSource & { readonly random: RandomSource },
  { log, call, deadlineMs, findRefusal }: LogOpening,
): Promise<AsyncIterable<Uint8Array>> {
  const id = call.request.query.get(LOG_PARAMETER) ?? '';
  if (id === '') throw status.badRequest('logs are read at the address of the API, which redirects to this one');
  const request = await openLogRequest(source.items, {
    nodeName: log.nodeName,
    id,
    reader: source.random.uuid(),
    nowMs: call.nowMs,
    untilMs: deadlineMs,
  });
  if (request === undefined) throw status.expired('the request for this log expired or has been answered');
  try {
    const { user, podUid, container } = request;
    const isSame = user === call.user.username && podUid === log.pod.metadata.uid && container === log.container;
    if (!isSame) throw status.expired('the request for this log is of another user or another container');
    // A ticket may be older than the deletion of its identity.
    const refusal = await findRefusal().catch(() => undefined);
    if (refusal !== undefined) throw refusal;
    const started = await awaitFirstChunk(source, request);
    return logOutput(source, request, started, { endMs: deadlineMs, findRefusal });
  } catch (error) {
    await closeLogRequest(source.items, request);
    throw error;
  }
}
