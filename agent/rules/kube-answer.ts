/** What an answer of the API contains, whatever transported it. */
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';

export const answeredWith = (answer: KubeAnswer, ...statuses: readonly number[]): boolean =>
  answer.kind === 'answered' && statuses.includes(answer.status);

/** Whether the same request may succeed later: no answer, too many requests, or a fault of the server. */
export const isTransient = (answer: KubeAnswer): boolean =>
  answer.kind === 'failed' || answer.status === 429 || answer.status >= 500;

/** The object in an answer; undefined when there is none, such as in an error page of a gateway. */
export function objectIn<T extends KubeObject>(answer: KubeAnswer): T | undefined {
  if (answer.kind !== 'answered' || !isJsonObject(answer.body) || !isJsonObject(answer.body['metadata']))
    return undefined;
  return answer.body as T;
}

/**
 * The Node of this name in an answer. A gateway that answers everything with 200, such as a captive portal, has none.
 */
export function nodeIn(answer: KubeAnswer, nodeName: string): KubeNode | undefined {
  const node = objectIn<KubeNode>(answer);
  const isOurs = node?.kind === 'Node' && node.metadata.name === nodeName && (node.metadata.uid ?? '') !== '';
  return isOurs ? node : undefined;
}

/** The Lease of this name in an answer; undefined as for nodeIn. */
export function leaseIn(answer: KubeAnswer, name: string): KubeObject | undefined {
  const lease = objectIn(answer);
  return lease?.kind === 'Lease' && lease.metadata.name === name ? lease : undefined;
}

/** `AlreadyExists`, `Conflict` …, which share a status code; '' when the answer has none. */
export function reasonOf(answer: KubeAnswer): string {
  if (answer.kind !== 'answered' || !isJsonObject(answer.body)) return '';
  const { reason } = answer.body;
  return typeof reason === 'string' ? reason : '';
}

/** For logs: status and message, or why there was no answer. */
export function describeAnswer(answer: KubeAnswer): string {
  if (answer.kind === 'failed') return answer.cause instanceof Error ? answer.cause.message : String(answer.cause);
  const message = isJsonObject(answer.body) ? answer.body['message'] : undefined;
  return typeof message === 'string' ? `${answer.status} ${message}` : String(answer.status);
}
