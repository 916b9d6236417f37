/**
 * Poison: objects of a few machines that are at every limit: some cannot be written, read or used in a computation.
 * They are written through the API, as the machine or the operator, or directly into the tables, as data that an older
 * version accepted. They are not removed. Then the machine crashes, often with other machines of its zone. Those other
 * machines must not be affected (L12).
 */
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import type { Commit } from '../shared/store/object-store.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';
import { oneOf } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const FIRST_AFTER_MS = 100_000;
const MEAN_MS = 130_000;
/** Share of actions after which the machine crashes. */
const CRASH_SHARE = 0.7;
/** Maximum number of other machines in the zone that crash with it. */
const COMPANIONS_MAX = 2;
/** JSON of an object in UTF-16 units: the limits of older versions and of clients now. */
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
/** `deletionTimestamp` texts that an older version stored for a grace period beyond the range of dates. */
const MALFORMED_TIMES = ['+033658-09-27T01:46:40Z', '+275760-09-13T00:00:00Z', 'Invalid Date'] as const;
const LIFECYCLE_KEYS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const;
const BUSY_WRITES = 300;
const BUSY_EVERY_MS = 120;

/** An object with the member names of ODD_NAMES, which a literal cannot have. */
const withOddNames = (value: string): Record<string, string> =>
  Object.fromEntries(ODD_NAMES.map((name) => [name, value])) as Record<string, string>;

const toleratingFor = (tolerationSeconds: number): readonly object[] =>
  LIFECYCLE_KEYS.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));

export interface Poison {
  /** Names of the nodes with items in the tables that are throttled at present. */
  readonly throttled: ReadonlySet<string>;
  /** Whether items were throttled at this time or later. Epoch milliseconds. */
  hasThrottledSince(atMs: number): boolean;
}

interface BadObjectsOptions {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly uuid: () => string;
  readonly send: Send;
  readonly view: ClusterView;
  readonly isPoisoned: (name: string) => boolean;
  readonly zoneOf: (name: string) => string | undefined;
  /** Writes into the tables directly, without the API. */
  readonly commit: (commit: Commit) => Promise<unknown>;
  readonly crash: (name: string, offMs: number) => void;
  readonly log: (subject: string, text: string) => void;
  readonly onPoison: (name: string) => void;
  readonly onAnswer: (request: Omit<EndpointRequest, 'who'>, answer: EndpointAnswer, sentAtMs: number) => void;
}

export function createPoison(options: BadObjectsOptions): Poison {
  const created = new BadObjects(options);
  created.start();
  return created;
}

class BadObjects implements Poison {
  readonly #options: BadObjectsOptions;
  readonly throttled = new Set<string>();
  #throttledUntilMs = 0;
  #made = 0;
  /** Actions on one Node and its pods, by their text in the timeline. */
  readonly #actions: Readonly<Record<string, (node: KubeNode, name: string) => Promise<unknown>>>;

  constructor(options: BadObjectsOptions) {
    this.#options = options;
    this.#actions = {
      'its Node is as large as a client may make it': (node, name) => this.#growNode(node, name),
      'it runs large mirror pods': (node, name) => this.#runLargeMirrorPods(node, name),
      'its pods ask for absurd times': (node, name) => this.#createPodsWithExtremeTimes(node, name),
      'a pod of its is deleted with an absurd grace': (_, name) => this.#deletePodWithExtremeGrace(name),
      'it has countless taints, labels, conditions and owners': (_, name) => this.#exceedCounts(name),
      'its names and values are odd': (node, name) => this.#useOddNames(node, name),
      'its dates are from the ends of the calendar': (_, name) => this.#useExtremeDates(name),
      'it has old pods with times that no calendar has': (_, name) => this.#storePodsWithMalformedTimes(name),
      'its old Node is larger than a client may make it': (node) => this.#storeOversizeNode(node),
      'its old Node has times that no calendar has': (node) => this.#storeNodeWithMalformedTimes(node),
      'it has a thousand pods with long names, each with its time': (_, name) => this.#storeManyPods(name),
      'the tables throttle what belongs to it': (_, name) => this.#throttleItems(name),
      'somebody writes to its Node all the time': (_, name) => this.#writeNodeContinuously(name),
    };
  }

  start(): void {
    void this.#live();
  }

  hasThrottledSince(atMs: number): boolean {
    return this.throttled.size > 0 || this.#throttledUntilMs >= atMs;
  }

  #between(least: number, most: number): number {
    return least + this.#options.fraction() * (most - least);
  }

  #oneOf<T>(things: readonly T[]): T {
    return oneOf(things, this.#options.fraction)!;
  }

  async #ask(who: string, request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> {
    const sentAtMs = this.#options.time.nowMs();
    const answer = await this.#options.send({ who, ...request }, { isGone: () => false });
    this.#options.onAnswer(request, answer, sentAtMs);
    return answer;
  }

  #isDone({ status }: EndpointAnswer): boolean {
    return status === 200 || status === 201;
  }

  #nodePath(name: string): string {
    return `/api/v1/nodes/${name}`;
  }

  #merge(who: string, path: string, body: unknown): Promise<EndpointAnswer> {
    return this.#ask(who, { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' });
  }

  #nextName(name: string): string {
    this.#made += 1;
    return `bad-${name}-${this.#made}`;
  }

  /** A mirror pod, which the node creates for a static pod. `more`: further metadata and spec. */
  #mirrorPod(node: KubeNode, more: { readonly metadata?: object; readonly spec?: object } = {}): KubeObject {
    const { name = '', uid = '' } = node.metadata;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: this.#nextName(name),
        namespace: 'default',
        annotations: { 'kubernetes.io/config.mirror': 'x' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid, controller: true }],
        ...more.metadata,
      },
      spec: { nodeName: name, containers: [{ name: 'main', image: 'registry.example/main:1' }], ...more.spec },
    };
  }

  #boundPod(name: string, more: { readonly metadata?: object; readonly spec?: object } = {}): KubeObject {
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: this.#nextName(name), namespace: 'default', ...more.metadata },
      spec: { nodeName: name, containers: [{ name: 'main', image: 'registry.example/main:1' }], ...more.spec },
    };
  }

  #create(who: string, pod: KubeObject): Promise<EndpointAnswer> {
    return this.#ask(who, { method: 'POST', path: '/api/v1/namespaces/default/pods', body: pod });
  }

  /** Stores pods directly, as data of an older version. */
  async #store(pods: readonly KubeObject[]): Promise<void> {
    const creationTimestamp = new Date(this.#options.time.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z');
    const writes = pods.map((pod) => ({
      kind: 'create' as const,
      ref: { resource: 'pods', namespace: 'default', name: pod.metadata.name ?? '' },
      object: {
        ...pod,
        metadata: { uid: this.#options.uuid(), creationTimestamp, ...pod.metadata },
        status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], ...(pod.status as object) },
      } as KubeObject,
    }));
    await this.#options.commit({ writes });
  }

  async #storeNode(node: KubeNode, change: (node: KubeNode) => KubeNode): Promise<void> {
    const name = node.metadata.name ?? '';
    const ref = { resource: 'nodes', namespace: '', name };
    await this.#options.commit({ writes: [{ kind: 'update', ref, object: change(node), previous: node }] });
  }

  async #growNode(node: KubeNode, name: string): Promise<void> {
    const own = JSON.stringify(node).length;
    for (const length of TEXT_LENGTHS) {
      const annotations = { 'sim.nodekeeper.dev/fat': WIDE.repeat(Math.max(0, length - own)) };
      if (this.#isDone(await this.#merge(name, this.#nodePath(name), { metadata: { annotations } }))) return;
    }
  }

  async #runLargeMirrorPods(node: KubeNode, name: string): Promise<void> {
    for (let index = 0; index < LARGE_PODS; index += 1) {
      for (const length of TEXT_LENGTHS) {
        const container = { name: 'main', image: 'registry.example/main:1', args: [WIDE.repeat(length - 1_500)] };
        const pod = this.#mirrorPod(node, { spec: { containers: [container] } });
        if (!this.#isDone(await this.#create(name, pod))) continue;
        const now = new Date(this.#options.time.nowMs()).toISOString();
        await this.#merge(name, `/api/v1/namespaces/default/pods/${pod.metadata.name}/status`, {
          status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }] },
        });
        break;
      }
    }
  }

  async #createPodsWithExtremeTimes(node: KubeNode, name: string): Promise<void> {
    for (const terminationGracePeriodSeconds of GRACES) {
      await this.#create(OPERATOR, this.#boundPod(name, { spec: { terminationGracePeriodSeconds } }));
    }
    for (const seconds of TOLERATED) {
      await this.#create(name, this.#mirrorPod(node, { spec: { tolerations: toleratingFor(seconds) } }));
    }
  }

  async #deletePodWithExtremeGrace(name: string): Promise<void> {
    const pod = this.#boundPod(name);
    if (!this.#isDone(await this.#create(OPERATOR, pod))) return;
    const path = `/api/v1/namespaces/default/pods/${pod.metadata.name}`;
    const gracePeriodSeconds = this.#oneOf(GRACES);
    if (this.#options.fraction() < 0.5) {
      await this.#ask(OPERATOR, {
        method: 'DELETE',
        path,
        query: { gracePeriodSeconds: String(gracePeriodSeconds) },
      });
      return;
    }
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod.metadata.name, namespace: 'default' },
      deleteOptions: { gracePeriodSeconds },
    };
    await this.#ask(OPERATOR, { method: 'POST', path: `${path}/eviction`, body });
  }

  async #exceedCounts(name: string): Promise<void> {
    const many = (count: number): number[] => Array.from({ length: count }, (__, index) => index);
    const taints = many(1_500).map((index) => ({ key: `sim.nodekeeper.dev/t${index}`, effect: 'NoSchedule' }));
    await this.#merge(OPERATOR, this.#nodePath(name), { spec: { taints } });
    const labels = Object.fromEntries(many(800).map((index) => [`sim.nodekeeper.dev/l${index}`, 'x']));
    await this.#merge(OPERATOR, this.#nodePath(name), { metadata: { labels } });
    const conditions = many(500).map((index) => ({ type: `Odd${index}`, status: 'True' }));
    await this.#ask(name, {
      method: 'PATCH',
      path: `${this.#nodePath(name)}/status`,
      body: { status: { conditions } },
      contentType: 'application/strategic-merge-patch+json',
    });
    const tolerations = many(1_000).map((index) => ({ key: `k${index}`, operator: 'Exists', effect: 'NoExecute' }));
    await this.#create(OPERATOR, this.#boundPod(name, { spec: { tolerations } }));
    const finalizers = many(600).map((index) => `sim.nodekeeper.dev/f${index}`);
    const ownerReferences = many(500).map((index) => {
      return { apiVersion: 'v1', kind: 'Pod', name: `owner-${index}`, uid: `${index}` };
    });
    await this.#create(OPERATOR, this.#boundPod(name, { metadata: { finalizers, ownerReferences } }));
  }

  async #useOddNames(node: KubeNode, name: string): Promise<void> {
    const odd = withOddNames('héß 节点 \u{1F680}');
    await this.#merge(OPERATOR, this.#nodePath(name), { metadata: { annotations: odd } });
    await this.#merge(OPERATOR, this.#nodePath(name), { metadata: { labels: withOddNames('x') } });
    const taints = ODD_NAMES.map((key) => ({ key, value: 'x', effect: 'NoExecute' }));
    await this.#merge(OPERATOR, this.#nodePath(name), {
      spec: { taints: [...(node.spec?.taints ?? []), ...taints] },
    });
    const conditions = ODD_NAMES.map((type) => ({ type, status: 'True' }));
    await this.#ask(name, {
      method: 'PATCH',
      path: `${this.#nodePath(name)}/status`,
      body: { status: { conditions } },
      contentType: 'application/strategic-merge-patch+json',
    });
    const tolerations = ODD_NAMES.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute' }));
    const metadata = { name: this.#nextName(name).padEnd(253, 'x'), annotations: odd };
    await this.#create(OPERATOR, this.#boundPod(name, { metadata, spec: { tolerations } }));
  }

  async #useExtremeDates(name: string): Promise<void> {
    const date = this.#oneOf(ODD_TIMES);
    await this.#ask(name, {
      method: 'PATCH',
      path: `${this.#nodePath(name)}/status`,
      body: {
        status: {
          conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: date, lastTransitionTime: date }],
        },
      },
      contentType: 'application/strategic-merge-patch+json',
    });
    const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`;
    const spec = { renewTime: date, acquireTime: date, leaseDurationSeconds: 2 ** 31 - 1 };
    await this.#merge(name, lease, { spec });
    const [pod] = [...this.#options.view.podsOf(name)];
    if (pod === undefined) return;
    await this.#merge(name, `/api/v1/namespaces/default/pods/${pod.metadata.name}/status`, {
      status: {
        startTime: date,
        conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: date }],
      },
    });
  }

  async #storePodsWithMalformedTimes(name: string): Promise<void> {
    await this.#store([
      ...MALFORMED_TIMES.map((deletionTimestamp) =>
        this.#boundPod(name, { metadata: { deletionTimestamp, deletionGracePeriodSeconds: 1e12 } }),
      ),
      ...GRACES.map((terminationGracePeriodSeconds) =>
        this.#boundPod(name, { spec: { terminationGracePeriodSeconds } }),
      ),
      ...TOLERATED.map((seconds) => this.#boundPod(name, { spec: { tolerations: toleratingFor(seconds) } })),
    ]);
  }

  async #storeOversizeNode(node: KubeNode): Promise<void> {
    const room = 119_900 - JSON.stringify(node).length - 100;
    if (room <= 0) return;
    await this.#storeNode(node, (before) => {
      const annotations = { ...before.metadata.annotations, 'sim.nodekeeper.dev/old': 'x'.repeat(room) };
      return { ...before, metadata: { ...before.metadata, annotations } };
    });
  }

  async #storeNodeWithMalformedTimes(node: KubeNode): Promise<void> {
    await this.#storeNode(node, (before) => ({
      ...before,
      spec: {
        ...before.spec,
        taints: [
          ...(before.spec?.taints ?? []),
          { key: 'sim.nodekeeper.dev/old', effect: 'NoExecute', timeAdded: this.#oneOf(MALFORMED_TIMES) },
        ],
      },
      status: {
        ...before.status,
        conditions: (before.status?.conditions ?? []).map((condition) => ({
          ...condition,
          lastHeartbeatTime: this.#oneOf(MALFORMED_TIMES),
          lastTransitionTime: this.#oneOf(MALFORMED_TIMES),
        })),
      },
    }));
  }

  async #storeManyPods(name: string): Promise<void> {
    if ([...this.#options.view.podsOf(name)].length >= COUNTLESS_PODS) return;
    for (let first = 0; first < COUNTLESS_PODS; first += COMMIT_PODS) {
      await this.#store(
        Array.from({ length: COMMIT_PODS }, () =>
          this.#boundPod(name, {
            metadata: { name: this.#nextName(name).padEnd(249, 'x') },
            spec: { tolerations: toleratingFor(864_000) },
          }),
        ),
      );
      await this.#options.time.sleep(20);
    }
  }

  async #throttleItems(name: string): Promise<void> {
    this.throttled.add(name);
    await this.#options.time.sleep(this.#between(60_000, 240_000));
    this.throttled.delete(name);
    this.#throttledUntilMs = this.#options.time.nowMs();
  }

  async #writeNodeContinuously(name: string): Promise<void> {
    for (let count = 0; count < BUSY_WRITES; count += 1) {
      void this.#merge(OPERATOR, this.#nodePath(name), {
        metadata: { annotations: { 'sim.nodekeeper.dev/busy': String(count) } },
      });
      await this.#options.time.sleep(BUSY_EVERY_MS);
    }
  }

  async #die(name: string): Promise<void> {
    await this.#options.time.sleep(this.#between(0, 20_000));
    const offMs = this.#between(120_000, 420_000);
    const zone = this.#options.zoneOf(name);
    const others = [...this.#options.view.nodes.keys()].filter(
      (each) => !this.#options.isPoisoned(each) && this.#options.zoneOf(each) === zone,
    );
    this.#options.crash(name, offMs);
    const companions = Math.floor(this.#options.fraction() * (COMPANIONS_MAX + 1));
    for (let count = 0; count < companions && others.length > 0; count += 1) {
      this.#options.crash(this.#oneOf(others), offMs + this.#between(-60_000, 60_000));
    }
  }

  async #live(): Promise<void> {
    await this.#options.time.sleep(FIRST_AFTER_MS);
    for (;;) {
      const names = [...this.#options.view.nodes.keys()].filter(this.#options.isPoisoned);
      if (names.length > 0) {
        const name = this.#oneOf(names);
        const [what, action] = this.#oneOf(Object.entries(this.#actions));
        this.#options.log(name, `poison: ${what}`);
        this.#options.onPoison(name);
        const node = this.#options.view.nodes.get(name);
        const done = node === undefined ? undefined : action(node, name);
        // Some take minutes; the machine may die meanwhile.
        await Promise.race([done, this.#options.time.sleep(this.#between(1_000, 15_000))]);
        if (this.#options.fraction() < CRASH_SHARE) await this.#die(name);
      }
      await this.#options.time.sleep(1_000 - Math.log(1 - this.#options.fraction()) * MEAN_MS);
    }
  }
}
