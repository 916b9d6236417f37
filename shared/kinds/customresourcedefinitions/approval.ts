/**
 * Definitions in groups of the Kubernetes community say in an annotation who approved them. Pure.
 * Source: k8s.io/apiextensions-apiserver pkg/apihelpers/helpers.go, pkg/controller/apiapproval.
 */
import { type DefinitionCondition, type KubeCustomResourceDefinition, withCondition } from './definition.ts';

export const APPROVED = 'api-approved.kubernetes.io';
const RULE = `protected groups must have approval annotation "${APPROVED}"`;
const REVIEWED = 'see https://github.com/kubernetes/enhancements/pull/1111';

type Verdict = Pick<DefinitionCondition, 'status' | 'reason' | 'message'>;

/** undefined: the group is not a protected one. */
export function approvalOf({ spec, metadata }: KubeCustomResourceDefinition): Verdict | undefined {
  if (!/(^|\.)(k8s\.io|kubernetes\.io)$/.test(spec?.group ?? '')) return undefined;
  const value = metadata.annotations?.[APPROVED] ?? '';
  if (value === '') return { status: 'False', reason: 'MissingAnnotation', message: `${RULE}, ${REVIEWED}` };
  if (value.startsWith('unapproved')) {
    return { status: 'False', reason: 'UnapprovedAnnotation', message: `not approved: ${JSON.stringify(value)}` };
  }
  if (URL.canParse(value)) return { status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${value}` };
  const message = `${RULE} with either a URL or a reason starting with "unapproved", ${REVIEWED}`;
  return { status: 'False', reason: 'InvalidAnnotation', message };
}

/** The definition with the condition. `at`: its time if it changes, RFC 3339. */
export function withApproval(definition: KubeCustomResourceDefinition, at: string): KubeCustomResourceDefinition {
  const verdict = approvalOf(definition);
  if (verdict === undefined) return definition;
  return withCondition(definition, { type: 'KubernetesAPIApprovalPolicyConformant', ...verdict }, at);
}
