/** Configurations of webhooks: their refusal where none are called, and warnings. The calls: server/webhooks. */

import { matchesRules } from '../../../shared/admission/match.rule.ts';
import { renewalOfNode } from '../../../shared/admission/node-renewal.ts';
import { validateWebhooks } from '../../../shared/kinds/admission-policies/validate-webhooks.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import type { KubeMutatingWebhookConfiguration } from '../../../shared/kinds/types.ts';
import { forbiddenField } from '../../../shared/kubernetes/causes.ts';
import * as status from '../../../shared/kubernetes/status.ts';

const NOT_CALLED =
  'no webhook is called here: only nodekeeper serve over its own file calls them, because functions on AWS reach no ' +
  'server in a pod. Use a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy: its CEL expressions need no server';
const NODE_LEASES = 'renewals of Leases in kube-node-lease are heartbeats: no webhook is called for them';

/** @param isCalled a process calls webhooks @returns warnings @throws StatusError 422 */
export async function admitWebhooks(
  descriptor: ResourceDescriptor,
  { metadata, webhooks = [] }: KubeMutatingWebhookConfiguration,
  isCalled: boolean,
): Promise<readonly string[]> {
  const refuse = (causes: readonly status.Cause[]) => status.invalid(descriptor, metadata.name ?? '', causes);
  if (webhooks.length === 0) return [];
  if (!isCalled) throw refuse([forbiddenField('webhooks', NOT_CALLED)]);
  const faults = validateWebhooks(webhooks);
  if (faults.length > 0) throw refuse(faults);
  const { compileConditions } = await import('../../../shared/admission/compile-policy.ts');
  const causes = webhooks.flatMap((webhook, i) => compileConditions(webhook, `webhooks[${i}]`).causes);
  if (causes.length > 0) throw refuse(causes);
  const isForNodeLeases = webhooks.some(({ rules = [], matchPolicy = '' }) =>
    matchesRules({ resourceRules: rules, matchPolicy }, renewalOfNode, false),
  );
  return isForNodeLeases ? [NODE_LEASES] : [];
}
