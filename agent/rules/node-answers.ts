/** What the answers to a read of our Node and to a patch of its status mean (pkg/kubelet/kubelet_node_status.go). */
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { retryAfterWaitMs } from './backoff.ts';
import { answeredWith, objectIn } from './kube-answer.ts';

export type NodeAnswer =
  | { readonly kind: 'node'; readonly node: KubeNode }
  /**
   * 404: the Node is registered again. Upstream does not do this; our controller deletes Nodes of terminated instances.
   */
  | { readonly kind: 'missing'; readonly cause: unknown }
  /** `waitMs`: least wait before the next try, as the server asked. Milliseconds. */
  | { readonly kind: 'failed'; readonly cause: unknown; readonly waitMs: number };

/** `fraction` yields a number in [0, 1). It is called for an answer that may ask for a wait. */
export function nodeAnswer(answer: KubeAnswer, fraction: () => number): NodeAnswer {
  const node = answeredWith(answer, 200) ? objectIn<KubeNode>(answer) : undefined;
  if (node !== undefined) return { kind: 'node', node };
  if (answer.kind === 'failed') return { kind: 'failed', cause: answer.cause, waitMs: 0 };
  const cause = { status: answer.status, body: answer.body };
  if (answer.status === 404) return { kind: 'missing', cause };
  return { kind: 'failed', cause, waitMs: retryAfterWaitMs(answer, fraction()) };
}
