/**
 * The pods of a simulated machine. No process runs. A pod that is bound to the machine is reported as Running and Ready
 * at once. Its containers obey SIGTERM: the deletion of a deleted pod is confirmed as soon as the machine sees it.
 */
import { answeredWith } from '../../agent/rules/kube-answer.ts';
import { podsVersionOf } from '../../agent/rules/lease.ts';
import { finalPodDeletion, isPodMissing, podStatusReport } from '../../agent/rules/pod-requests.ts';
import { needsStartedStatus, startedStatus } from '../../agent/rules/started-pod.ts';
import { recordOf } from '../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { ApiAnswer, ApiRequest } from './api-client.ts';
import { DONE, failed, type MachineContext, type Step } from './machine-state.ts';
import { addressOf } from './node-object.ts';

/** Lists its pods when the answer to a beat says that they changed. */
export async function processPods(context: MachineContext): Promise<Step> {
  const { identity, state, clock, send } = context;
  const version = (state.lease === undefined ? undefined : podsVersionOf(state.lease)) ?? '';
  if (version === state.podsVersion) return DONE;
  const found = await send({ method: 'GET', path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${identity.name}` });
  if (!answeredWith(found, 200)) return failed(context, 'listing its pods', found);
  const at = { nowMs: clock.nowMs(), machineAddress: addressOf(identity) };
  for (const request of podRequests(podsIn(found), at)) {
    const answer = await send(request);
    if (!answeredWith(answer, 200) && !isPodMissing(answer)) return failed(context, 'reporting a pod', answer);
  }
  state.podsVersion = version;
  return DONE;
}

const podsIn = (answer: ApiAnswer): readonly KubeObject[] =>
  answer.kind === 'answered' ? ((recordOf(answer.body)['items'] ?? []) as readonly KubeObject[]) : [];

/** The address of a pod: in the network of its machine, unique among up to 150 pods of the machine. */
const podAddress = (machineAddress: string, index: number): string =>
  `${machineAddress.split('.').slice(0, 3).join('.')}.${100 + (index % 150)}`;

export function podRequests(
  pods: readonly KubeObject[],
  { nowMs, machineAddress }: { readonly nowMs: number; readonly machineAddress: string },
): readonly ApiRequest[] {
  return pods.flatMap((pod, index): ApiRequest[] => {
    if (pod.metadata.deletionTimestamp !== undefined) return [finalPodDeletion(pod)];
    if (!needsStartedStatus(pod)) return [];
    const podIP = podAddress(machineAddress, index);
    const status = { ...startedStatus(pod, nowMs, machineAddress), podIP, podIPs: [{ ip: podIP }] };
    return [podStatusReport(pod, status)];
  });
}
