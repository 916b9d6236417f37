/** `pods/log` in the API: stores the request for the agent, and redirects the client to the streaming function. */

import type { AnswerPodLog } from '../../../shared/api/call.ts';
import { LOG_PARAMETER } from '../../../shared/api/logs/pod-log.ts';
import { type Redirection, redirectWithTicket } from '../../../shared/api/watch/watch-redirect.ts';
import type { RandomSource } from '../../../shared/clock.ts';
import {
  LOGS_PER_CLUSTER_MAX,
  LOGS_PER_NODE_MAX,
  LOGS_PER_USER,
  type LogRefusal,
  type LogRequest,
} from '../../../shared/kinds/pods/log-request.ts';
import { createLogRequest, logsRequested } from '../../../shared/kinds/pods/log-request-store.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';

/** Between two attempts of a client at a limit. Seconds. */
const RETRY_AFTER_SECONDS = 5;

export function redirectLogs(
  redirection: Redirection,
  { items, random }: { readonly items: ItemStore; readonly random: RandomSource },
): AnswerPodLog {
  return async ({ pod, nodeName, container, options }, call) => {
    const { name = '', namespace = '', uid = '' } = pod.metadata;
    const request: LogRequest = {
      id: random.uuid(),
      nodeName,
      namespace,
      podName: name,
      podUid: uid,
      container,
      user: call.user.username,
      options,
    };
    const creation = await createLogRequest(items, request, call.nowMs);
    if (creation.kind !== 'created') {
      throw status.tooManyRequests(`${reasonOf(creation.kind, request)}; try again later`, {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    // Refused only for a node that never sent a heartbeat. Its request then ends with a 504.
    await items.write(logsRequested(nodeName));
    return redirectWithTicket(redirection, call, { [LOG_PARAMETER]: request.id });
  };
}

function reasonOf(refusal: LogRefusal, { user, nodeName }: LogRequest): string {
  const own = `${JSON.stringify(user)} reads`;
  switch (refusal) {
    case 'userAtLimitOfNode':
      return `${own} ${LOGS_PER_USER.ofNode} logs of node ${status.quote(nodeName)}, the most that one user may read at once`;
    case 'userAtLimitOfCluster':
      return `${own} ${LOGS_PER_USER.ofCluster} logs, the most that one user may read at once`;
    case 'nodeAtLimit':
      return `${LOGS_PER_NODE_MAX} logs of node ${status.quote(nodeName)} are read, the most at once`;
    case 'clusterAtLimit':
      return `${LOGS_PER_CLUSTER_MAX} logs of this cluster are read, the most at once`;
  }
}
