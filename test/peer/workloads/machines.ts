/**
 * Machines for a control plane that has none. They register Nodes, renew Leases and report pods as a kubelet would.
 * Upstream and Nodekeeper get the same ones, so the controllers are all that differs.
 *
 * The tag of a pod's image decides how its container behaves: `broken` never starts, `succeeds` ends with 0, `fails`
 * with 1. Any other runs and is ready.
 */
import type { ApiClient } from '../../../demo/fleet/api-client.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { until } from '../../support/until.ts';
import { answerOf } from '../command.ts';

const BEAT_MS = 2_000;
const LOOK_MS = 300;
const READY_MS_MAX = 60_000;
const NODE_ADDRESS = '192.0.2.1';
const POD_ADDRESS = '192.0.2.9';
const STRATEGIC = 'application/strategic-merge-patch+json';
const MERGE = 'application/merge-patch+json';

export interface Machines {
  /** A silent machine renews no Lease and reports no pod. */
  silence(name: string): void;
  /** Every machine continues. */
  restoreAll(): void;
  stop(): Promise<void>;
}

export async function startMachines(client: ApiClient, names: readonly string[]): Promise<Machines> {
  const silent = new Set<string>();
  /** Machines that have not reported yet that they are Ready again. */
  const returning = new Set<string>();
  const stopped = new AbortController();
  for (const name of names) await register(client, name);
  const running = [
    repeat(stopped.signal, BEAT_MS, async () => {
      await renewLeases(client, names, silent);
      for (const name of returning) if (await reportReady(client, name)) returning.delete(name);
    }),
    repeat(stopped.signal, LOOK_MS, () => reportPods(client, names, silent)),
  ];
  await until(async () => (await untainted(client)).length === names.length, {
    withinMs: READY_MS_MAX,
    what: 'Ready nodes without taints',
  });
  return {
    silence: (name) => silent.add(name),
    restoreAll() {
      for (const name of silent) returning.add(name);
      silent.clear();
    },
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}

async function repeat(signal: AbortSignal, everyMs: number, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await work();
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

async function untainted(client: ApiClient): Promise<readonly unknown[]> {
  const { body } = await answerOf(client, { method: 'GET', path: '/api/v1/nodes' });
  const { items } = body as { items: readonly { spec: { taints?: readonly unknown[] } }[] };
  return items.filter(({ spec }) => (spec.taints ?? []).length === 0);
}

const timeNow = (): string => new Date().toISOString().replace(/\.\d+Z$/, 'Z');

const conditionOf = (type: string, status: string, reason: string) => ({
  type,
  status,
  reason,
  message: reason,
  lastHeartbeatTime: timeNow(),
  lastTransitionTime: timeNow(),
});

const readyConditions = () => [
  conditionOf('Ready', 'True', 'KubeletReady'),
  conditionOf('MemoryPressure', 'False', 'KubeletHasSufficientMemory'),
  conditionOf('DiskPressure', 'False', 'KubeletHasNoDiskPressure'),
  conditionOf('PIDPressure', 'False', 'KubeletHasSufficientPID'),
];

async function reportReady(client: ApiClient, name: string): Promise<boolean> {
  const body = { status: { conditions: readyConditions() } };
  const path = `/api/v1/nodes/${name}/status`;
  const answer = await client.send({ method: 'PATCH', path, body, contentType: STRATEGIC });
  return answer.kind === 'answered' && answer.status === 200;
}

async function register(client: ApiClient, name: string): Promise<void> {
  const capacity = { cpu: '16', memory: '64Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' } },
    status: {
      capacity,
      allocatable: capacity,
      addresses: [{ type: 'InternalIP', address: NODE_ADDRESS }],
      conditions: readyConditions(),
    },
  };
  await answerOf(client, { method: 'POST', path: '/api/v1/nodes', body: node });
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTime() },
  };
  // The namespace of the Leases appears a moment after upstream answers.
  await until(() => answerOf(client, { method: 'POST', path: leasePath(''), body: lease }), {
    withinMs: READY_MS_MAX,
    everyMs: 500,
    what: `the Lease of ${name}`,
  });
}

const microTime = (): string => new Date().toISOString().replace('Z', '000Z');
const leasePath = (name: string): string =>
  `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases${name === '' ? '' : `/${name}`}`;

async function renewLeases(client: ApiClient, names: readonly string[], silent: ReadonlySet<string>): Promise<void> {
  for (const name of names) {
    if (silent.has(name)) continue;
    const body = { spec: { renewTime: microTime() } };
    await client.send({ method: 'PATCH', path: leasePath(name), body, contentType: MERGE, urgent: true });
  }
}

async function reportPods(client: ApiClient, names: readonly string[], silent: ReadonlySet<string>): Promise<void> {
  const answer = await client.send({ method: 'GET', path: '/api/v1/pods' });
  if (answer.kind === 'failed' || answer.status !== 200) return;
  const { items } = answer.body as { items: readonly KubePod[] };
  for (const pod of items) {
    const nodeName = pod.spec?.nodeName ?? '';
    if (names.includes(nodeName) && !silent.has(nodeName)) await reportPod(client, pod);
  }
}

/** A status that is refused, because the pod changed or is deleted, is decided again at the next look. */
async function reportPod(client: ApiClient, pod: KubePod): Promise<void> {
  const { name, namespace, uid, deletionTimestamp } = pod.metadata;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  if (deletionTimestamp !== undefined) {
    await client.send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0, preconditions: { uid } } });
    return;
  }
  const status = nextStatus(pod);
  if (status === undefined) return;
  await client.send({ method: 'PATCH', path: `${path}/status`, body: { status }, contentType: STRATEGIC });
}

/** The status to report; undefined when the stored one is right. */
export function nextStatus(pod: KubePod): Readonly<Record<string, unknown>> | undefined {
  const now = timeNow();
  const image = pod.spec?.containers?.[0]?.image ?? '';
  const tag = image.slice(image.lastIndexOf(':') + 1);
  const phase = pod.status?.phase ?? 'Pending';
  const isStarted = (pod.status as { hostIP?: string } | undefined)?.hostIP !== undefined;
  const condition = (type: string, isTrue: boolean, reason?: string) => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastTransitionTime: now,
    ...(reason !== undefined && { reason }),
  });
  const report = (isReady: boolean, of: string, state: object, reason?: string) => ({
    phase: of,
    hostIP: NODE_ADDRESS,
    podIP: POD_ADDRESS,
    startTime: now,
    conditions: [
      condition('Initialized', true, reason === 'PodCompleted' ? reason : undefined),
      condition('Ready', isReady, reason),
      condition('ContainersReady', isReady, reason),
    ],
    containerStatuses: (pod.spec?.containers ?? []).map(({ name, image: of }) => ({
      name,
      image: of,
      imageID: '',
      ready: isReady,
      restartCount: 0,
      state,
    })),
  });
  if (phase === 'Pending' && !isStarted) {
    return tag === 'broken'
      ? report(false, 'Pending', { waiting: { reason: 'ImagePullBackOff' } }, 'ContainersNotReady')
      : report(true, 'Running', { running: { startedAt: now } });
  }
  if (phase !== 'Running' || (tag !== 'succeeds' && tag !== 'fails')) return undefined;
  const exitCode = tag === 'succeeds' ? 0 : 1;
  const reason = exitCode === 0 ? 'Completed' : 'Error';
  const state = { terminated: { exitCode, reason, startedAt: now, finishedAt: now } };
  return exitCode === 0
    ? report(false, 'Succeeded', state, 'PodCompleted')
    : report(false, 'Failed', state, 'ContainersNotReady');
}
