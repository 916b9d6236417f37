/** What the answer to the creation of a Node means (pkg/kubelet/kubelet_node_status.go). */
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { JsonObject } from '../../shared/kubernetes/json.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { answeredWith, describeAnswer, nodeIn, reasonOf } from './kube-answer.ts';
import { nodeStatusPatch } from './node-patch.ts';
import { reconcileNode } from './node-registration.ts';

export type RegistrationAnswer =
  | { readonly kind: 'registered'; readonly node: KubeNode }
  /** The Node is read and corrected. */
  | { readonly kind: 'mayExist' }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * Meaning of the answer to a creation or a correction of the Node. A 200 without the Node of this name is a failure.
 */
export function registrationAnswer(answer: KubeAnswer, nodeName: string): RegistrationAnswer {
  if (answeredWith(answer, 200, 201)) {
    const node = nodeIn(answer, nodeName);
    if (node !== undefined) return { kind: 'registered', node };
    return { kind: 'failed', why: `${describeAnswer(answer)}, but the answer is not the Node ${nodeName}` };
  }
  // An admission rule may forbid the creation of a Node that exists.
  const mayExist = answeredWith(answer, 403) || (answeredWith(answer, 409) && reasonOf(answer) === 'AlreadyExists');
  return mayExist ? { kind: 'mayExist' } : { kind: 'failed', why: describeAnswer(answer) };
}

/** Corrects an existing Node at registration, as a patch of its status subresource. Undefined: nothing to correct. */
export function registrationPatch(
  existing: KubeNode,
  initial: KubeNode,
  options: { readonly zeroExtendedResources: boolean },
): JsonObject | undefined {
  const { node, changed } = reconcileNode(existing, initial, options);
  return changed ? nodeStatusPatch(existing, node) : undefined;
}
