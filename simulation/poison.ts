/**
 * Poison: a few machines whose objects are at every limit at once, so that some of them cannot be written, read or computed
 * with. They come through the API, as the machine or as the operator; and straight into the tables, as data that an older
 * version accepted. Once there they stay. Then the machine dies, often together with neighbours in its zone: those must not
 * notice (L12).
 */
import type { KubeNode, KubeObject } from '../shared/kube/types.ts';
import type { Commit } from '../shared/store/object-store.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';
import type { VirtualTime } from './virtual-time.ts';

const FIRST_AFTER_MS = 100_000;
const MEAN_MS = 130_000;
/** Share of deeds after which the machine dies, and how many others of its zone die with it at most. */
const DEATH_SHARE = 0.7;
const COMPANIONS_MAX = 2;
/** JSON of an object in UTF-16 units: what older versions took, and what clients may write now. */
const TEXT_LENGTHS = [119_500, 99_500, 90_000] as const;
/** Three bytes each in UTF-8. */
const WIDE = '中';
const LARGE_PODS = 8;
const COUNTLESS_PODS = 1_150;
const COMMIT_PODS = 25;
const GRACES = [1e12, 1e13, 8.64e15, 1e300] as const;
const TOLERATED = [1e11, 1e300, -1e300, 2 ** 63] as const;
const ODD_NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'] as const;
const ODD_TIMES = ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '0000-01-01T00:00:00+23:59'] as const;
/** As `deletionTimestamp` was written of a grace that no date can follow. */
const MALFORMED_TIMES = ['+033658-09-27T01:46:40Z', '+275760-09-13T00:00:00Z', 'Invalid Date'] as const;
const LIFECYCLE_KEYS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const;
const BUSY_WRITES = 300;
const BUSY_EVERY_MS = 120;

/** An object with names that a literal cannot have. */
const withOddNames = (value: string): Record<string, string> =>
  Object.fromEntries(ODD_NAMES.map((name) => [name, value])) as Record<string, string>;

const toleratingFor = (tolerationSeconds: number): readonly object[] =>
  LIFECYCLE_KEYS.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));

export interface Poison {
  /** Names of calls to the tables that are throttled at this moment: those of a node and what belongs to it. */
  readonly throttled: ReadonlySet<string>;
}

export function poisonMachines(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly uuid: () => string;
  readonly send: Send;
  readonly view: ClusterView;
  readonly isPoisoned: (name: string) => boolean;
  readonly zoneOf: (name: string) => string | undefined;
  /** Straight into the tables. */
  readonly commit: (commit: Commit) => Promise<unknown>;
  readonly crash: (name: string, offMs: number) => void;
  readonly tell: (subject: string, text: string) => void;
  readonly onPoison: (name: string) => void;
  readonly onAnswer: (request: Omit<EndpointRequest, 'who'>, answer: EndpointAnswer) => void;
}): Poison {
  const { time, fraction, send, view, isPoisoned, commit, crash, tell } = options;
  const throttled = new Set<string>();
  let made = 0;

  const between = (least: number, most: number): number => least + fraction() * (most - least);
  const oneOf = <T>(things: readonly T[]): T => things[Math.floor(fraction() * things.length)] as T;
  async function ask(who: string, request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> {
    const answer = await send({ who, ...request }, { isGone: () => false });
    options.onAnswer(request, answer);
    return answer;
  }
  const isDone = ({ status }: EndpointAnswer): boolean => status === 200 || status === 201;
  const nodePath = (name: string): string => `/api/v1/nodes/${name}`;
  const merge = (who: string, path: string, body: unknown): Promise<EndpointAnswer> =>
    ask(who, { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' });
  const nextName = (name: string): string => {
    made += 1;
    return `bad-${name}-${made}`;
  };

  /** `more`: metadata and spec of a pod that the node itself reports, as a static pod. */
  function mirrorPod(node: KubeNode, more: { readonly metadata?: object; readonly spec?: object } = {}): KubeObject {
    const { name = '', uid = '' } = node.metadata;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: nextName(name),
        namespace: 'default',
        annotations: { 'kubernetes.io/config.mirror': 'x' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid, controller: true }],
        ...more.metadata,
      },
      spec: { nodeName: name, containers: [{ name: 'main', image: 'registry.example/main:1' }], ...more.spec },
    };
  }
  function boundPod(name: string, more: { readonly metadata?: object; readonly spec?: object } = {}): KubeObject {
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: nextName(name), namespace: 'default', ...more.metadata },
      spec: { nodeName: name, containers: [{ name: 'main', image: 'registry.example/main:1' }], ...more.spec },
    };
  }
  const create = (who: string, pod: KubeObject): Promise<EndpointAnswer> =>
    ask(who, { method: 'POST', path: '/api/v1/namespaces/default/pods', body: pod });

  /** Pods as an older version stored them. */
  async function store(pods: readonly KubeObject[]): Promise<void> {
    const creationTimestamp = new Date(time.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z');
    const writes = pods.map((pod) => ({
      kind: 'create' as const,
      ref: { resource: 'pods', namespace: 'default', name: pod.metadata.name ?? '' },
      object: {
        ...pod,
        metadata: { uid: options.uuid(), creationTimestamp, ...pod.metadata },
        status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], ...(pod.status as object) },
      } as KubeObject,
    }));
    await commit({ writes });
  }
  async function storeNode(node: KubeNode, change: (node: KubeNode) => KubeNode): Promise<void> {
    const name = node.metadata.name ?? '';
    const ref = { resource: 'nodes', namespace: '', name };
    await commit({ writes: [{ kind: 'update', ref, object: change(node), previous: node }] });
  }

  /** Each a deed against one Node and its pods. */
  const deeds: Readonly<Record<string, (node: KubeNode, name: string) => Promise<unknown>>> = {
    async 'its Node is as large as a client may make it'(node, name) {
      const own = JSON.stringify(node).length;
      for (const length of TEXT_LENGTHS) {
        const annotations = { 'sim.nodekeeper.dev/fat': WIDE.repeat(Math.max(0, length - own)) };
        if (isDone(await merge(name, nodePath(name), { metadata: { annotations } }))) return;
      }
    },

    async 'it runs large mirror pods'(node, name) {
      for (let index = 0; index < LARGE_PODS; index += 1) {
        for (const length of TEXT_LENGTHS) {
          const container = { name: 'main', image: 'registry.example/main:1', args: [WIDE.repeat(length - 1_500)] };
          const pod = mirrorPod(node, { spec: { containers: [container] } });
          if (!isDone(await create(name, pod))) continue;
          const now = new Date(time.nowMs()).toISOString();
          await merge(name, `/api/v1/namespaces/default/pods/${pod.metadata.name}/status`, {
            status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }] },
          });
          break;
        }
      }
    },

    async 'its pods ask for absurd times'(node, name) {
      for (const terminationGracePeriodSeconds of GRACES) {
        await create(OPERATOR, boundPod(name, { spec: { terminationGracePeriodSeconds } }));
      }
      for (const seconds of TOLERATED) {
        await create(name, mirrorPod(node, { spec: { tolerations: toleratingFor(seconds) } }));
      }
    },

    async 'a pod of its is deleted with an absurd grace'(_, name) {
      const pod = boundPod(name);
      if (!isDone(await create(OPERATOR, pod))) return;
      const path = `/api/v1/namespaces/default/pods/${pod.metadata.name}`;
      const gracePeriodSeconds = oneOf(GRACES);
      if (fraction() < 0.5) {
        await ask(OPERATOR, { method: 'DELETE', path, query: { gracePeriodSeconds: String(gracePeriodSeconds) } });
        return;
      }
      const body = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name: pod.metadata.name, namespace: 'default' },
        deleteOptions: { gracePeriodSeconds },
      };
      await ask(OPERATOR, { method: 'POST', path: `${path}/eviction`, body });
    },

    async 'it has countless taints, labels, conditions and owners'(_, name) {
      const many = (count: number): number[] => Array.from({ length: count }, (__, index) => index);
      const taints = many(1_500).map((index) => ({ key: `sim.nodekeeper.dev/t${index}`, effect: 'NoSchedule' }));
      await merge(OPERATOR, nodePath(name), { spec: { taints } });
      const labels = Object.fromEntries(many(800).map((index) => [`sim.nodekeeper.dev/l${index}`, 'x']));
      await merge(OPERATOR, nodePath(name), { metadata: { labels } });
      const conditions = many(500).map((index) => ({ type: `Odd${index}`, status: 'True' }));
      await ask(name, {
        method: 'PATCH',
        path: `${nodePath(name)}/status`,
        body: { status: { conditions } },
        contentType: 'application/strategic-merge-patch+json',
      });
      const tolerations = many(1_000).map((index) => ({ key: `k${index}`, operator: 'Exists', effect: 'NoExecute' }));
      await create(OPERATOR, boundPod(name, { spec: { tolerations } }));
      const finalizers = many(600).map((index) => `sim.nodekeeper.dev/f${index}`);
      const ownerReferences = many(500).map((index) => {
        return { apiVersion: 'v1', kind: 'Pod', name: `owner-${index}`, uid: `${index}` };
      });
      await create(OPERATOR, boundPod(name, { metadata: { finalizers, ownerReferences } }));
    },

    async 'its names and values are odd'(node, name) {
      const odd = withOddNames('héß 节点 \u{1F680}');
      await merge(OPERATOR, nodePath(name), { metadata: { annotations: odd } });
      await merge(OPERATOR, nodePath(name), { metadata: { labels: withOddNames('x') } });
      const taints = ODD_NAMES.map((key) => ({ key, value: 'x', effect: 'NoExecute' }));
      await merge(OPERATOR, nodePath(name), { spec: { taints: [...(node.spec?.taints ?? []), ...taints] } });
      const conditions = ODD_NAMES.map((type) => ({ type, status: 'True' }));
      await ask(name, {
        method: 'PATCH',
        path: `${nodePath(name)}/status`,
        body: { status: { conditions } },
        contentType: 'application/strategic-merge-patch+json',
      });
      const tolerations = ODD_NAMES.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute' }));
      const metadata = { name: nextName(name).padEnd(253, 'x'), annotations: odd };
      await create(OPERATOR, boundPod(name, { metadata, spec: { tolerations } }));
    },

    async 'its dates are from the ends of the calendar'(_, name) {
      const date = oneOf(ODD_TIMES);
      await ask(name, {
        method: 'PATCH',
        path: `${nodePath(name)}/status`,
        body: {
          status: {
            conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: date, lastTransitionTime: date }],
          },
        },
        contentType: 'application/strategic-merge-patch+json',
      });
      const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`;
      const spec = { renewTime: date, acquireTime: date, leaseDurationSeconds: 2 ** 31 - 1 };
      await merge(name, lease, { spec });
      const [pod] = [...view.podsOf(name)];
      if (pod === undefined) return;
      await merge(name, `/api/v1/namespaces/default/pods/${pod.metadata.name}/status`, {
        status: {
          startTime: date,
          conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: date }],
        },
      });
    },

    async 'it has old pods with times that no calendar has'(_, name) {
      await store([
        ...MALFORMED_TIMES.map((deletionTimestamp) =>
          boundPod(name, { metadata: { deletionTimestamp, deletionGracePeriodSeconds: 1e12 } }),
        ),
        ...GRACES.map((terminationGracePeriodSeconds) => boundPod(name, { spec: { terminationGracePeriodSeconds } })),
        ...TOLERATED.map((seconds) => boundPod(name, { spec: { tolerations: toleratingFor(seconds) } })),
      ]);
    },

    async 'its old Node is larger than a client may make it'(node) {
      const room = 119_900 - JSON.stringify(node).length - 100;
      if (room <= 0) return;
      await storeNode(node, (before) => {
        const annotations = { ...before.metadata.annotations, 'sim.nodekeeper.dev/old': 'x'.repeat(room) };
        return { ...before, metadata: { ...before.metadata, annotations } };
      });
    },

    async 'its old Node has times that no calendar has'(node) {
      await storeNode(node, (before) => ({
        ...before,
        spec: {
          ...before.spec,
          taints: [
            ...(before.spec?.taints ?? []),
            { key: 'sim.nodekeeper.dev/old', effect: 'NoExecute', timeAdded: oneOf(MALFORMED_TIMES) },
          ],
        },
        status: {
          ...before.status,
          conditions: (before.status?.conditions ?? []).map((condition) => ({
            ...condition,
            lastHeartbeatTime: oneOf(MALFORMED_TIMES),
            lastTransitionTime: oneOf(MALFORMED_TIMES),
          })),
        },
      }));
    },

    async 'it has a thousand pods with long names, each with its time'(_, name) {
      if ([...view.podsOf(name)].length >= COUNTLESS_PODS) return;
      for (let first = 0; first < COUNTLESS_PODS; first += COMMIT_PODS) {
        await store(
          Array.from({ length: COMMIT_PODS }, () =>
            boundPod(name, {
              metadata: { name: nextName(name).padEnd(249, 'x') },
              spec: { tolerations: toleratingFor(864_000) },
            }),
          ),
        );
        await time.sleep(20);
      }
    },

    async 'the tables throttle what belongs to it'(_, name) {
      throttled.add(name);
      await time.sleep(between(60_000, 240_000));
      throttled.delete(name);
    },

    async 'somebody writes to its Node all the time'(_, name) {
      for (let count = 0; count < BUSY_WRITES; count += 1) {
        void merge(OPERATOR, nodePath(name), {
          metadata: { annotations: { 'sim.nodekeeper.dev/busy': String(count) } },
        });
        await time.sleep(BUSY_EVERY_MS);
      }
    },
  };

  async function die(name: string): Promise<void> {
    await time.sleep(between(0, 20_000));
    const offMs = between(120_000, 420_000);
    const zone = options.zoneOf(name);
    const others = [...view.nodes.keys()].filter((each) => !isPoisoned(each) && options.zoneOf(each) === zone);
    crash(name, offMs);
    const companions = Math.floor(fraction() * (COMPANIONS_MAX + 1));
    for (let count = 0; count < companions && others.length > 0; count += 1) {
      crash(oneOf(others), offMs + between(-60_000, 60_000));
    }
  }

  async function live(): Promise<void> {
    await time.sleep(FIRST_AFTER_MS);
    for (;;) {
      const names = [...view.nodes.keys()].filter(isPoisoned);
      if (names.length > 0) {
        const name = oneOf(names);
        const [what, deed] = oneOf(Object.entries(deeds));
        tell(name, `poison: ${what}`);
        options.onPoison(name);
        const node = view.nodes.get(name);
        const done = node === undefined ? undefined : deed(node, name);
        // Some take minutes; the machine may die meanwhile.
        await Promise.race([done, time.sleep(between(1_000, 15_000))]);
        if (fraction() < DEATH_SHARE) await die(name);
      }
      await time.sleep(1_000 - Math.log(1 - fraction()) * MEAN_MS);
    }
  }
  void live();
  return { throttled };
}
