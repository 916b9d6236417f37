/**
 * GET of `pods/log`: the checks that upstream's API server and kubelet make before the first byte. The output itself is
 * streamed by the streaming function (log-redirect.ts, log-stream.ts).
 *
 * A pod without a status of the container is "not available", as for a kubelet that has just started.
 */

import { logContainer, podLogOptions, refuseWithoutLog } from '../../kinds/pods/pod-log-options.ts';
import type { KubePod } from '../../kinds/types.ts';
import type { HttpResponse } from '../../kubernetes/http.ts';
import * as status from '../../kubernetes/status.ts';
import type { Call, ReadDependencies } from '../call.ts';
import { refuseWithoutAgent } from './without-agent.ts';

const NO_CONTENT: HttpResponse = { status: 204, headers: { 'cache-control': 'no-cache, private' }, body: '' };

export async function readLog(dependencies: ReadDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const options = podLogOptions(target.name, request.query);
  const pod: KubePod | undefined = await dependencies.storageOf(descriptor).get(target.namespace, target.name);
  if (pod === undefined) throw status.notFound(descriptor, target.name);
  const container = logContainer(pod, request.query.get('container') ?? '');
  const nodeName = pod.spec?.nodeName ?? '';
  if (nodeName === '') return NO_CONTENT;
  await refuseWithoutAgent(dependencies, nodeName, 'logs');
  refuseWithoutLog(pod, container, options.previous);
  if (dependencies.answerPodLog === undefined) {
    throw status.notServed('logs are not served: the cluster is deployed with watchMode longPoll, which cannot stream');
  }
  return dependencies.answerPodLog({ pod, nodeName, container, options }, call);
}
