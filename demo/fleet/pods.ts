/**
 * The pods of a simulated machine. No process runs. A pod that is bound to the machine is reported as Running and Ready
 * at once. Its containers obey SIGTERM: the deletion of a deleted pod is confirmed as soon as the machine sees it.
 */
import { answeredWith } from '../../agent/rules/kube-answer.ts';
import { podsVersionOf } from '../../agent/rules/lease.ts';
import { finalPodDeletion, isPodMissing, podStatusReport } from '../../agent/rules/pod-requests.ts';
import { hasEnded, rejectedStatus } from '../../agent/rules/pod-status.ts';
import type { PodStatus } from '../../agent/rules/shutdown-status.ts';
import { needsStartedStatus, resizedStatus, startedStatus } from '../../agent/rules/started-pod.ts';
import { conflictsWith, type HostPort, hostPortsOf } from '../../shared/kinds/pods/pod-needs.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { NAME_LENGTH_MAX } from '../../shared/kubernetes/kubernetes.ts';
import { recordOf } from '../../shared/kubernetes/normal-form.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { ApiAnswer, ApiRequest } from './api-client.ts';
import { DONE, failed, type MachineContext, type Step } from './machine-state.ts';
import type { MachineIdentity } from './names.ts';
import { addressOf, statusOfMachine } from './node-object.ts';
import { podAddresses } from './pod-addresses.ts';
import { useOf } from './usage.ts';

/** Lists its pods when the answer to a beat says that they changed. */
export async function processPods(context: MachineContext): Promise<Step> {
  const { identity, state, clock, send } = context;
  const version = (state.lease === undefined ? undefined : podsVersionOf(state.lease)) ?? '';
  if (version === state.podsVersion) return DONE;
  const found = await send({ method: 'GET', path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${identity.name}` });
  if (!answeredWith(found, 200)) return failed(context, 'listing its pods', found);
  const pods = podsIn(found);
  state.use = useOf(pods);
  for (const request of podRequests(pods, identity, clock.nowMs())) {
    const answer = await send(request);
    if (!answeredWith(answer, 200, 201) && !isPodMissing(answer)) return failed(context, 'reporting a pod', answer);
  }
  state.podsVersion = version;
  return DONE;
}

const podsIn = (answer: ApiAnswer): readonly KubeObject[] =>
  answer.kind === 'answered' ? ((recordOf(answer.body)['items'] ?? []) as readonly KubeObject[]) : [];

/** One event for the pod, once its containers run (pkg/kubelet/kuberuntime/kuberuntime_container.go). */
function startedEvents(
  pod: KubeObject,
  status: PodStatus,
  { nowMs, nodeName }: { readonly nowMs: number; readonly nodeName: string },
): readonly ApiRequest[] {
  if (status['phase'] !== 'Running') return [];
  const { name = '', namespace = '', uid = '' } = pod.metadata;
  const atText = formatTime(nowMs);
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    // The same name for a repeated turn: a second creation is refused.
    metadata: { name: `${name}.${uid}.started`.slice(-NAME_LENGTH_MAX), namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
    reason: 'Started',
    message: 'Started containers of the pod',
    type: 'Normal',
    source: { component: 'kubelet', host: nodeName },
    firstTimestamp: atText,
    lastTimestamp: atText,
    count: 1,
  };
  return [{ method: 'POST', path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`, body: event }];
}

const admittedAt = ({ status }: KubeObject): unknown => status?.['startTime'];

/**
 * Pods that the machine rejects: an earlier pod has a host port that they want. Source:
 * pkg/kubelet/lifecycle/predicate.go.
 *
 * A scheduler does not bind such a pod. A pod with `spec.nodeName` of its own, or of a DaemonSet, meets no scheduler.
 */
function withoutPorts(pods: readonly KubeObject[]): ReadonlySet<KubeObject> {
  const used: HostPort[] = [];
  const rejected = new Set<KubeObject>();
  const running = pods.filter((pod) => !hasEnded(pod));
  const isNew = (pod: KubePod): boolean => admittedAt(pod) === undefined;
  const created = ({ metadata }: KubeObject): string => `${metadata.creationTimestamp ?? ''}/${metadata.uid ?? ''}`;
  const arriving = running.filter(isNew).sort((one, other) => (created(one) < created(other) ? -1 : 1));
  for (const pod of [...running.filter((each) => !isNew(each)), ...arriving]) {
    const wanted = hostPortsOf((pod as KubePod).spec ?? {});
    if (isNew(pod) && conflictsWith(wanted)(used)) rejected.add(pod);
    else used.push(...wanted);
  }
  return rejected;
}

const NO_PORT = {
  reason: 'NodePorts',
  message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
};

/** When its containers started: a pod that was only marked still runs. */
function startedAtMs({ status }: KubePod): number | undefined {
  const startedAt = status?.containerStatuses?.[0]?.state?.running?.startedAt;
  return startedAt == null ? undefined : Date.parse(startedAt);
}

/** @param pods all pods that are bound to the machine */
export function podRequests(
  pods: readonly KubeObject[],
  machine: MachineIdentity,
  nowMs: number,
): readonly ApiRequest[] {
  const hostIp = addressOf(machine);
  const addresses = podAddresses(machine, pods);
  const rejected = withoutPorts(pods);
  return pods.flatMap((pod): ApiRequest[] => {
    if (pod.metadata.deletionTimestamp !== undefined) return [finalPodDeletion(pod)];
    if (rejected.has(pod)) return [podStatusReport(pod, rejectedStatus(pod.status ?? {}, NO_PORT, nowMs))];
    if (!needsStartedStatus(pod)) {
      const accepted = () => pods.filter((each) => !rejected.has(each));
      const resized = resizedStatus(pod, accepted, { metadata: {}, status: statusOfMachine(machine) }, nowMs);
      if (resized !== undefined) return [podStatusReport(pod, resized)];
      if (hasEnded(pod) || pod.status?.observedGeneration === pod.metadata.generation) return [];
    }
    const podIP = addresses.get(pod.metadata.uid ?? '');
    const network = podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] };
    const status: PodStatus = { ...startedStatus(pod, nowMs, hostIp, startedAtMs(pod) ?? nowMs), ...network };
    const isFirst = pod.status?.['phase'] !== status['phase'];
    const at = { nowMs, nodeName: machine.name };
    return [podStatusReport(pod, status), ...(isFirst ? startedEvents(pod, status, at) : [])];
  });
}
