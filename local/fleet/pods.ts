/**
 * The pods of a simulated machine. No process runs. A pod that is bound to the machine is reported as Running and Ready
 * at once, and the deletion of a deleted pod is confirmed after its grace period.
 */
import { answeredWith } from '../../agent/rules/kube-answer.ts';
import { podsVersionOf } from '../../agent/rules/lease.ts';
import { finalPodDeletion, isPodMissing, podStatusReport } from '../../agent/rules/pod-requests.ts';
import { needsStartedStatus, startedStatus } from '../../agent/rules/started-pod.ts';
import { recordOf } from '../../shared/kube/normal-form.ts';
import { parseTimeMs } from '../../shared/kube/time.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { ApiAnswer, ApiRequest } from './api-client.ts';
import { DONE, failed, type MachineContext, type Step } from './machine-state.ts';
import { addressOf } from './node-object.ts';

export interface PodWork {
  readonly requests: readonly ApiRequest[];
  /** End of the next grace period; undefined without a deleted pod. Epoch milliseconds. */
  readonly dueAtMs: number | undefined;
}

/** Lists its pods when the answer to a beat says that they changed, or when a grace period is over. */
export async function processPods(context: MachineContext): Promise<Step> {
  const { identity, state, clock, send } = context;
  const version = (state.lease === undefined ? undefined : podsVersionOf(state.lease)) ?? '';
  if (version === state.podsVersion && clock.nowMs() < state.podsDueAtMs) return DONE;
  const found = await send({ method: 'GET', path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${identity.name}` });
  if (!answeredWith(found, 200)) return failed(context, 'listing its pods', found);
  const { requests, dueAtMs } = podWork(podsIn(found), {
    nowMs: clock.nowMs(),
    machineAddress: addressOf(identity),
  });
  for (const request of requests) {
    const answer = await send(request);
    if (!answeredWith(answer, 200) && !isPodMissing(answer)) return failed(context, 'reporting a pod', answer);
  }
  state.podsVersion = version;
  state.podsDueAtMs = dueAtMs ?? Number.POSITIVE_INFINITY;
  return DONE;
}

const podsIn = (answer: ApiAnswer): readonly KubeObject[] =>
  answer.kind === 'answered' ? ((recordOf(answer.body)['items'] ?? []) as readonly KubeObject[]) : [];

/** The address of a pod: in the network of its machine, unique among up to 150 pods of the machine. */
const podAddress = (machineAddress: string, index: number): string =>
  `${machineAddress.split('.').slice(0, 3).join('.')}.${100 + (index % 150)}`;

export function podWork(
  pods: readonly KubeObject[],
  { nowMs, machineAddress }: { readonly nowMs: number; readonly machineAddress: string },
): PodWork {
  const requests: ApiRequest[] = [];
  let dueAtMs: number | undefined;
  pods.forEach((pod, index) => {
    const endsAtMs = parseTimeMs(pod.metadata.deletionTimestamp);
    if (endsAtMs !== undefined && endsAtMs <= nowMs) requests.push(finalPodDeletion(pod));
    else if (endsAtMs !== undefined) dueAtMs = Math.min(dueAtMs ?? endsAtMs, endsAtMs);
    else if (needsStartedStatus(pod)) {
      const podIP = podAddress(machineAddress, index);
      const status = { ...startedStatus(pod, nowMs, machineAddress), podIP, podIPs: [{ ip: podIP }] };
      requests.push(podStatusReport(pod, status));
    }
  });
  return { requests, dueAtMs };
}
