/**
 * What a simulated machine does about its pods. It runs nothing: a pod bound to it is Running and Ready at once, and a
 * deleted one ends when its grace period is over.
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
  /** When the next grace period ends; undefined when none runs. Epoch milliseconds. */
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

/** Own address of a pod: on the network of its machine, different for up to 150 pods of a machine. */
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
