/**
 * One story of a fleet through heartbeat, API, store and controllers, in which one machine may lie: it registers,
 * beats, posts status, runs pods, falls silent, recovers, and a person taints it. Answers what happened to every node
 * and pod, and when.
 */

import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { MERGE, NODES, node, pod, podsIn } from './api-in-memory.ts';
import { START_MS } from './controlled-fleet.ts';
import { type ServedFleet, servedFleet } from './served-fleet.ts';

export type Fields = Record<string, unknown>;

/** What the machine sends in place of the truth. `seconds` of the story's clock. */
export interface Lie {
  readonly node?: (node: KubeObject) => unknown;
  readonly lease?: (spec: Fields, seconds: number) => Fields;
  readonly leaseMetadata?: Fields;
  readonly status?: (status: Fields, seconds: number) => Fields;
  readonly nodeMetadata?: Fields;
  readonly nodeSpec?: Fields;
  readonly podStatus?: (status: Fields, seconds: number) => Fields;
  readonly podMetadata?: Fields;
  readonly mirrorPod?: (pod: KubeObject) => unknown;
  readonly event?: Fields;
  readonly query?: string;
  readonly headers?: Record<string, string>;
}

export interface Told {
  /** One line for each change: seconds, object, what. */
  readonly ofOthers: readonly string[];
  readonly ofLiar: readonly string[];
  /** Requests of the machine that were refused; it then sent the truth. */
  readonly refused: readonly string[];
}

const LIAR = 'n1';
const OTHERS = ['n2', 'n3', 'n4'];
const PERIOD = 5;
const SILENT_FROM = 60;
const SILENT_TO = 240;
const TAINTED_AT = 260;
const END = 360;
const PODS = podsIn('default');

const time = (seconds: number): string => new Date(START_MS + seconds * 1_000).toISOString().replace(/\.\d+Z/, 'Z');
const microTime = (seconds: number): string => time(seconds).replace('Z', '.000000Z');

const honestLease = (name: string, seconds: number): Fields => ({
  holderIdentity: name,
  leaseDurationSeconds: 40,
  renewTime: microTime(seconds),
});

const honestStatus = (seconds: number): Fields => ({
  capacity: { cpu: '2', memory: '4Gi', pods: '110' },
  conditions: [
    ...[
      ['Ready', 'True'],
      ['MemoryPressure', 'False'],
    ].map(([type, status]) => ({
      type,
      status,
      reason: 'Kubelet',
      message: 'as it is',
      lastHeartbeatTime: time(seconds),
      lastTransitionTime: time(0),
    })),
  ],
});

const honestPodStatus = (seconds: number): Fields => ({
  phase: 'Running',
  startTime: time(0),
  conditions: ['PodScheduled', 'Ready'].map((type) => ({ type, status: 'True', lastTransitionTime: time(seconds) })),
  containerStatuses: [
    { name: 'main', image: 'i', imageID: '', ready: true, restartCount: 0, state: { running: { startedAt: time(0) } } },
  ],
});

/** By the machine itself: pods that tolerate our taints for 60 s, and a person's for 30 s. */
const TOLERATIONS = [
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
  { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
];

export async function machineStory(lie: Lie): Promise<Told> {
  const served = servedFleet([LIAR, ...OTHERS]);
  const { fleet, send } = served;
  const refused = new Set<string>();

  /**
   * The false request, and the true one after a refusal: a machine with only refused requests would count as silent.
   */
  async function say(what: string, isLie: boolean, call: (lying: boolean) => Promise<number>): Promise<void> {
    const code = await call(isLie);
    if (code < 300) return;
    refused.add(`${what}: ${code}`);
    if ((await call(false)) >= 300) throw new Error(`${what} is refused though honest`);
  }
  const post = async (path: string, body: unknown, more: { query?: string; headers?: Record<string, string> } = {}) =>
    (await served.sendAs(LIAR, 'POST', `${path}${more.query ?? ''}`, { body, headers: more.headers ?? {} })).code;
  const patch = async (path: string, body: unknown) =>
    (await served.sendAs(LIAR, 'PATCH', path, { body, contentType: MERGE })).code;
  const request = (lying: boolean) => ({
    ...(lying && lie.query !== undefined ? { query: lie.query } : {}),
    ...(lying && lie.headers !== undefined ? { headers: lie.headers } : {}),
  });

  async function registerLiar(): Promise<void> {
    const own = node(LIAR, {
      metadata: { labels: { 'topology.kubernetes.io/zone': 'a' } },
      status: honestStatus(0),
    } as object);
    await say('registration', lie.node !== undefined, (lying) => post(NODES, lying ? lie.node?.(own) : own));
    const lease = (lying: boolean) => ({
      metadata: { name: LIAR, namespace: 'kube-node-lease', ...(lying ? lie.leaseMetadata : {}) },
      spec: lying ? (lie.lease?.(honestLease(LIAR, 0), 0) ?? honestLease(LIAR, 0)) : honestLease(LIAR, 0),
    });
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    await say('Lease', true, (lying) => post(path, lease(lying)));
  }

  async function speak(seconds: number): Promise<void> {
    const spec = honestLease(LIAR, seconds);
    await say('beat', true, (lying) =>
      served.beatAs(
        LIAR,
        { metadata: lying ? (lie.leaseMetadata ?? {}) : {}, spec: lying ? (lie.lease?.(spec, seconds) ?? spec) : spec },
        request(lying),
      ),
    );
    const status = honestStatus(seconds);
    await say('status', true, (lying) =>
      patch(`${NODES}/${LIAR}/status`, { status: lying ? (lie.status?.(status, seconds) ?? status) : status }),
    );
    if (lie.nodeMetadata !== undefined || lie.nodeSpec !== undefined) {
      await say('node', true, (lying) =>
        patch(`${NODES}/${LIAR}`, lying ? { metadata: lie.nodeMetadata ?? {}, spec: lie.nodeSpec ?? {} } : {}),
      );
    }
    const podStatus = honestPodStatus(seconds);
    for (const name of ['bound', 'mirror', 'late']) {
      if ((await fleet.pod(name)) === undefined) continue;
      await say('pod status', true, (lying) =>
        patch(`${PODS}/${name}/status`, {
          metadata: lying ? (lie.podMetadata ?? {}) : {},
          status: lying ? (lie.podStatus?.(podStatus, seconds) ?? podStatus) : podStatus,
        }),
      );
    }
    if (lie.event !== undefined) {
      const event = {
        metadata: { name: `e${seconds}` },
        involvedObject: { kind: 'Pod', namespace: 'default', name: 'bound' },
        reason: 'Evicted',
        type: 'Warning',
        ...lie.event,
      };
      const code = await post('/api/v1/namespaces/default/events', event);
      if (code >= 300) refused.add(`event: ${code}`);
    }
  }

  for (const name of OTHERS) {
    await fleet.register(name, { zone: 'a' });
    await fleet.post(name);
  }
  await registerLiar();
  for (const [name, nodeName] of [
    ['bound', LIAR],
    ['elsewhere', 'n2'],
  ] as const) {
    await send('POST', PODS, { body: pod(name, { spec: { nodeName, tolerations: TOLERATIONS } }) });
  }
  const owner = {
    apiVersion: 'v1',
    kind: 'Node',
    name: LIAR,
    uid: (await fleet.node(LIAR))?.metadata.uid,
    controller: true,
  };
  const mirror = pod('mirror', {
    metadata: { name: 'mirror', annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [owner] },
    spec: { nodeName: LIAR, tolerations: TOLERATIONS },
  } as object);
  await say('mirror pod', lie.mirrorPod !== undefined, (lying) => post(PODS, lying ? lie.mirrorPod?.(mirror) : mirror));
  await fleet.streams();

  const changes = { ofOthers: [] as string[], ofLiar: [] as string[] };
  const before = new Map<string, string>();
  for (let seconds = 0; seconds <= END; seconds += PERIOD) {
    fleet.at(seconds);
    if (seconds % 10 === 0) {
      await fleet.beat(...OTHERS);
      if (seconds < SILENT_FROM || seconds >= SILENT_TO) await speak(seconds);
    }
    if (seconds === TAINTED_AT) {
      const taints = [{ key: 'maintenance', effect: 'NoExecute' }];
      await send('PATCH', `${NODES}/${LIAR}`, { contentType: MERGE, body: { spec: { taints } } });
    }
    // Bound while the taint stands.
    if (seconds === TAINTED_AT + 20) {
      await send('POST', PODS, { body: pod('late', { spec: { tolerations: TOLERATIONS } }) });
      await send('POST', `${PODS}/late/binding`, {
        body: { metadata: { name: 'late' }, target: { kind: 'Node', name: LIAR } },
      });
    }
    await fleet.tick();
    if (seconds % 20 === 0) await fleet.collect();
    await fleet.streams();
    for (const [name, state] of await stateOf(served)) {
      if (before.get(name) === state) continue;
      before.set(name, state);
      const isLiars = [LIAR, 'bound', 'mirror', 'late'].includes(name);
      changes[isLiars ? 'ofLiar' : 'ofOthers'].push(`${seconds} s ${name}: ${state}`);
    }
  }
  return { ...changes, refused: [...refused].sort() };
}

/** Marks, taints with their times, deletions with their times. */
async function stateOf({ fleet }: ServedFleet): Promise<Map<string, string>> {
  const states = new Map<string, string>();
  const since = (text: string | null | undefined): string =>
    text === undefined || text === null ? '-' : `${((parseTimeMs(text) ?? 0) - START_MS) / 1_000} s`;
  for (const name of [LIAR, ...OTHERS]) {
    const found = (await fleet.node(name)) as KubeNode | undefined;
    const isMarked = found?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'Unknown';
    const taints = (found?.spec?.taints ?? []).map(
      ({ key, effect, timeAdded }) => `${key}:${effect}${effect === 'NoExecute' ? ` of ${since(timeAdded)}` : ''}`,
    );
    const going = found?.metadata.deletionTimestamp;
    states.set(
      name,
      found === undefined ? 'no Node' : `${isMarked ? 'marked' : 'not marked'} ${taints.sort()} ${since(going)}`,
    );
  }
  for (const name of ['bound', 'mirror', 'late', 'elsewhere']) {
    const found = await fleet.pod(name);
    const { deletionTimestamp: going, deletionGracePeriodSeconds: grace } = found?.metadata ?? {};
    states.set(name, found === undefined ? 'no pod' : `deletion ${since(going)} ${grace ?? '-'}`);
  }
  return states;
}
