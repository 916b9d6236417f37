/**
 * One simulated machine on virtual time: what its kubelet asks of the API.
 *
 * At each slot it renews its lease, posts status when that is due (five minutes since the last post, or its Node does not
 * say what it would say), runs pods that were bound to it and says so, and confirms the end of deleted ones. It sees its
 * Node and pods as a watch cache has them. A refused request is not repeated before the next slot; only a lost race for the
 * lease and a Node that is gone are dealt with at once.
 */
import type { ConditionStatus } from '../shared/domain/kubernetes.ts';
import { formatMicroTime, formatTime, parseTimeMs } from '../shared/kube/time.ts';
import type { KubeNode, KubeObject, NodeCondition } from '../shared/kube/types.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Endpoint, EndpointAnswer } from './endpoint.ts';
import type { MachineClock } from './faults/lying-clocks.ts';
import type { MachineSpec } from './scenario.ts';
import { providerIdOf } from './simulated-instance.ts';

export const STATUS_EVERY_MS = 300_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** Seconds a lease is good for, as kubelets write it. */
const LEASE_SECONDS = 40;
/** Pods that are started in one slot at most. */
const STARTS_MAX = 20;
const STRATEGIC = 'application/strategic-merge-patch+json';

const REASONS: Readonly<Record<string, readonly [whenTrue: string, otherwise: string]>> = {
  Ready: ['KubeletReady', 'KubeletNotReady'],
  MemoryPressure: ['KubeletHasInsufficientMemory', 'KubeletHasSufficientMemory'],
  DiskPressure: ['KubeletHasDiskPressure', 'KubeletHasNoDiskPressure'],
  PIDPressure: ['KubeletHasInsufficientPID', 'KubeletHasSufficientPID'],
};

export interface Machine {
  readonly spec: MachineSpec;
  readonly beating: boolean;
  /** Registers its Node with a first post of status; the start of everything. */
  register(nowMs: number): Promise<EndpointAnswer>;
  /** A slot, or the restart of a machine: `urgent` posts status in any case. */
  act(nowMs: number, options?: { readonly urgent?: boolean }): Promise<EndpointAnswer>;
  /** Posts status once, merging these conditions into what it says from then on. */
  post(nowMs: number, conditions: Readonly<Record<string, ConditionStatus>>): Promise<EndpointAnswer>;
  /** Confirms the end of pods whose grace period is over. */
  confirmPods(nowMs: number): Promise<void>;
  silence(): void;
  start(): void;
}

/** `clock`: of a machine that writes every time and count an agent can write, each by a clock of its own. */
export function createMachine(
  spec: MachineSpec,
  endpoint: Endpoint,
  view: ClusterView,
  clock: MachineClock | undefined = undefined,
): Machine {
  const { name } = spec;
  const nodePath = `/api/v1/nodes/${name}`;
  const leasePath = `${LEASES}/${name}`;
  const says = new Map<string, ConditionStatus>([
    ['MemoryPressure', 'False'],
    ['DiskPressure', 'False'],
    ['PIDPressure', 'False'],
    ['Ready', 'True'],
  ]);
  let beating = spec.beating;
  let lease: KubeObject | undefined;
  let postedAtMs = Number.NEGATIVE_INFINITY;
  let mustPost = false;

  const send = (method: string, path: string, body?: unknown, contentType?: string): Promise<EndpointAnswer> =>
    endpoint.send({
      who: name,
      method,
      path,
      ...(body === undefined ? {} : { body }),
      ...(contentType === undefined ? {} : { contentType }),
    });
  const isDone = ({ status }: EndpointAnswer): boolean => status === 200 || status === 201;

  /** By the machine's own clock. */
  function conditionsAt(nowMs: number, found: readonly NodeCondition[] | undefined): NodeCondition[] {
    const now = formatTime(clock?.timeMs('lastHeartbeatTime', nowMs) ?? nowMs + spec.clockOffsetMs);
    const changedAt = clock === undefined ? now : formatTime(clock.timeMs('lastTransitionTime', nowMs));
    return [...says].map(([type, status]) => {
      const before = found?.find((condition) => condition.type === type);
      const [whenTrue, otherwise] = REASONS[type] ?? [`${type}IsTrue`, `${type}IsNotTrue`];
      return {
        type,
        status,
        lastHeartbeatTime: now,
        lastTransitionTime: before?.status === status ? (before.lastTransitionTime ?? changedAt) : changedAt,
        reason: status === 'True' ? whenTrue : otherwise,
        message: 'as the machine says',
      };
    });
  }

  const isOverwritten = (node: KubeNode | undefined): boolean =>
    node !== undefined &&
    [...says].some(
      ([type, status]) => node.status?.conditions?.find((condition) => condition.type === type)?.status !== status,
    );

  async function postStatus(nowMs: number): Promise<EndpointAnswer> {
    const conditions = conditionsAt(nowMs, view.nodes.get(name)?.status?.conditions);
    const answer = await send('PATCH', `${nodePath}/status`, { status: { conditions } }, STRATEGIC);
    mustPost = !isDone(answer);
    if (isDone(answer)) postedAtMs = nowMs;
    return answer;
  }

  async function register(nowMs: number): Promise<EndpointAnswer> {
    const answer = await send('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', ...spec.labels },
        ...(clock === undefined ? {} : { creationTimestamp: formatTime(clock.timeMs('creationTimestamp', nowMs)) }),
      },
      spec: {
        ...(spec.taints.length === 0 ? {} : { taints: timedTaints(nowMs) }),
        ...(spec.hasInstance ? { providerID: providerIdOf(spec) } : {}),
      },
      status: {
        capacity: { cpu: '4', memory: '8Gi', pods: '110' },
        conditions: conditionsAt(nowMs, undefined),
        addresses: [{ type: 'Hostname', address: name }],
      },
    });
    lease = undefined;
    if (isDone(answer)) {
      postedAtMs = nowMs;
      mustPost = false;
    } else if (answer.status === 409) mustPost = true;
    return answer;
  }

  /** As a kubelet registers with taints; the time on one is the machine's. */
  const timedTaints = (nowMs: number): MachineSpec['taints'] =>
    clock === undefined
      ? spec.taints
      : spec.taints.map((taint) => ({ ...taint, timeAdded: formatTime(clock.timeMs('timeAdded', nowMs)) }));

  const leaseAt = (nowMs: number): KubeObject => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: lease?.metadata ?? { name, namespace: 'kube-node-lease' },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds: clock?.count('leaseDurationSeconds', LEASE_SECONDS, nowMs) ?? LEASE_SECONDS,
      renewTime: formatMicroTime(clock?.timeMs('renewTime', nowMs) ?? nowMs + spec.clockOffsetMs),
      ...(clock === undefined
        ? {}
        : {
            acquireTime: formatMicroTime(clock.timeMs('acquireTime', nowMs)),
            leaseTransitions: clock.count('leaseTransitions', 1, nowMs),
          }),
    },
  });

  async function createLease(nowMs: number, node: KubeObject): Promise<EndpointAnswer> {
    const body = leaseAt(nowMs);
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid }];
    const answer = await send('POST', LEASES, { ...body, metadata: { ...body.metadata, ownerReferences } });
    if (isDone(answer)) lease = answer.body as KubeObject;
    return answer;
  }

  async function renew(nowMs: number): Promise<EndpointAnswer> {
    if (lease === undefined) {
      const found = await send('GET', leasePath);
      if (found.status === 404) return comeBack(nowMs);
      if (!isDone(found)) return found;
      lease = found.body as KubeObject;
    }
    let answer = await send('PUT', leasePath, leaseAt(nowMs));
    if (answer.status === 409) {
      const found = await send('GET', leasePath);
      if (isDone(found)) {
        lease = found.body as KubeObject;
        answer = await send('PUT', leasePath, leaseAt(nowMs));
      }
    }
    if (answer.status === 404) {
      lease = undefined;
      return comeBack(nowMs);
    }
    if (isDone(answer)) lease = answer.body as KubeObject;
    return answer;
  }

  /** There is no lease: perhaps no Node either. */
  async function comeBack(nowMs: number): Promise<EndpointAnswer> {
    const node = await send('GET', nodePath);
    if (node.status === 404) {
      const registered = await register(nowMs);
      return isDone(registered) ? createLease(nowMs, registered.body as KubeObject) : registered;
    }
    return isDone(node) ? createLease(nowMs, node.body as KubeObject) : node;
  }

  async function runPods(nowMs: number): Promise<void> {
    let started = 0;
    for (const pod of [...view.podsOf(name)]) {
      if (started === STARTS_MAX) break;
      if (pod.metadata.deletionTimestamp !== undefined) continue;
      const phase = pod.status?.['phase'];
      if (phase === 'Succeeded' || phase === 'Failed') continue;
      if (phase === 'Running' && readyOfPod(pod) === 'True') continue;
      started += 1;
      const status = clock === undefined ? runningStatus(pod, nowMs + spec.clockOffsetMs) : timedStatus(nowMs, clock);
      await send('PATCH', `${podPath(pod)}/status`, status, STRATEGIC);
      if (clock !== undefined) await send('POST', `/api/v1/namespaces/default/events`, startedEvent(pod, nowMs, clock));
    }
  }

  async function confirmPods(nowMs: number): Promise<void> {
    for (const pod of [...view.podsOf(name)]) {
      const endsAtMs = parseTimeMs(pod.metadata.deletionTimestamp);
      if (endsAtMs === undefined || endsAtMs > nowMs) continue;
      await send('DELETE', podPath(pod), { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } });
    }
  }

  return {
    spec,
    get beating() {
      return beating;
    },
    register,
    async act(nowMs, { urgent = false } = {}) {
      const beat = await renew(nowMs);
      const due = nowMs - postedAtMs >= STATUS_EVERY_MS;
      if ((urgent && postedAtMs !== nowMs) || mustPost || due || isOverwritten(view.nodes.get(name))) {
        await postStatus(nowMs);
      }
      await runPods(nowMs);
      await confirmPods(nowMs);
      return beat;
    },
    async post(nowMs, conditions) {
      for (const [type, status] of Object.entries(conditions)) says.set(type, status);
      return postStatus(nowMs);
    },
    confirmPods,
    silence: () => {
      beating = false;
    },
    start: () => {
      beating = true;
    },
  };
}

/** A running pod with every time and count that an agent writes. */
function timedStatus(nowMs: number, clock: MachineClock): unknown {
  const at = (field: Parameters<MachineClock['timeMs']>[0]): string => formatTime(clock.timeMs(field, nowMs));
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
    type,
    status: 'True',
    lastProbeTime: at('lastProbeTime'),
    lastTransitionTime: at(type === 'PodScheduled' ? 'podScheduledTime' : 'podTransitionTime'),
  }));
  const restarts = clock.count('restartCount', 0, nowMs);
  const containers = [
    {
      name: 'main',
      image: 'registry.example/main:1',
      imageID: 'registry.example/main@sha256:0',
      ready: true,
      started: true,
      restartCount: restarts,
      state: { running: { startedAt: at('startedAt') } },
      lastState: { terminated: { exitCode: 1, startedAt: at('startedAt'), finishedAt: at('finishedAt') } },
    },
  ];
  return { status: { phase: 'Running', startTime: at('startTime'), conditions, containerStatuses: containers } };
}

/** What an agent reports of a pod that it has started. */
function startedEvent(pod: KubeObject, nowMs: number, clock: MachineClock): unknown {
  const { name = '', namespace, uid } = pod.metadata;
  const at = (field: Parameters<MachineClock['timeMs']>[0]): string => formatTime(clock.timeMs(field, nowMs));
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${nowMs.toString(16)}`, namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
    reason: 'Started',
    message: 'Started container main',
    type: 'Normal',
    source: { component: 'kubelet' },
    firstTimestamp: at('firstTimestamp'),
    lastTimestamp: at('lastTimestamp'),
    count: clock.count('eventCount', 1, nowMs),
  };
}

export const podPath = (pod: KubeObject): string =>
  `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`;

interface PodCondition {
  readonly type: string;
  readonly status: ConditionStatus;
}

export const readyOfPod = (pod: KubeObject): ConditionStatus | 'absent' =>
  ((pod.status?.['conditions'] as readonly PodCondition[] | undefined) ?? []).find(({ type }) => type === 'Ready')
    ?.status ?? 'absent';

/** What a kubelet says of a pod that runs. */
export function runningStatus(pod: KubeObject, nowMs: number): unknown {
  const now = formatTime(nowMs);
  const startTime = pod.status?.['startTime'] ?? now;
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
    type,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: type === 'PodScheduled' ? (pod.metadata.creationTimestamp ?? now) : now,
  }));
  return { status: { phase: 'Running', startTime, conditions } };
}
