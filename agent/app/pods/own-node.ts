import { defined } from '../../../shared/defined.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';
import { answeredWith, describeAnswer, objectIn } from '../../rules/kube-answer.ts';
import { nodePath } from '../../rules/lease.ts';
import type { PodLoopDependencies } from './dependencies.ts';

/** The Node of this machine, with what pods may use. Undefined when it cannot be read. */
export async function ownNode(
  { api, nodeName, log }: Pick<PodLoopDependencies, 'api' | 'nodeName' | 'log'>,
  consequence: string,
  signal?: AbortSignal,
): Promise<KubeNode | undefined> {
  const answer = await api.send({ method: 'GET', path: nodePath(nodeName), ...defined({ signal }) });
  const node = answeredWith(answer, 200) ? objectIn<KubeNode>(answer) : undefined;
  if (node === undefined && !signal?.aborted) {
    log.warn(`the Node cannot be read, so ${consequence}`, { why: describeAnswer(answer) });
  }
  return node;
}
