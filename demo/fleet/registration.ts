/** A simulated machine registers its Node. */
import { nodeIn } from '../../agent/rules/kube-answer.ts';
import { nodePath } from '../../agent/rules/lease.ts';
import { registrationAnswer, registrationPatch } from '../../agent/rules/registration-answers.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { ApiRequest } from './api-client.ts';
import { adoptNode, DONE, failed, type MachineContext, NEVER_REPORTED, type Step } from './machine-state.ts';
import { nodeAt } from './node-object.ts';

/** Creates the Node, or corrects the existing one. Four requests at most. */
export async function register(context: MachineContext): Promise<Step> {
  const { identity, settings, clock, send } = context;
  const initial = nodeAt(identity, settings.region, clock.nowMs());
  const created = await send({ method: 'POST', path: '/api/v1/nodes', body: initial });
  const creation = registrationAnswer(created, identity.name);
  if (creation.kind === 'registered') return registered(context, creation.node);
  if (creation.kind === 'failed') return failed(context, 'registering', created);
  const found = await send({ method: 'GET', path: nodePath(identity.name) });
  const existing = nodeIn(found, identity.name);
  if (existing === undefined) return failed(context, 'reading the existing Node', found);
  for (const request of corrections(existing, initial)) {
    const patched = await send(request);
    const correction = registrationAnswer(patched, identity.name);
    if (correction.kind !== 'registered') return failed(context, 'correcting the existing Node', patched);
  }
  return registered(context, existing);
}

/** Patches of an existing Node. The providerID is one of them: the local instance may be newer than its Node. */
function corrections(existing: KubeNode, initial: KubeNode): ApiRequest[] {
  const path = nodePath(initial.metadata.name ?? '');
  const requests: ApiRequest[] = [];
  const body = registrationPatch(existing, initial, { zeroExtendedResources: false });
  if (body !== undefined) {
    const contentType = 'application/strategic-merge-patch+json';
    requests.push({ method: 'PATCH', path: `${path}/status`, body, contentType });
  }
  const providerID = initial.spec?.providerID;
  if (providerID !== undefined && existing.spec?.providerID === undefined) {
    const contentType = 'application/merge-patch+json';
    requests.push({ method: 'PATCH', path, body: { spec: { providerID } }, contentType });
  }
  return requests;
}

function registered(context: MachineContext, node: KubeNode): Step {
  adoptNode(context, node);
  context.counters.registrations += 1;
  context.state.report = NEVER_REPORTED;
  return DONE;
}
