/**
 * Write units of each kind of change, by kind of item: registration, a status that changes the Node, a pod's life, the
 * marks of a failed zone, an eviction, and a deletion. The API, the controllers and the streams run over tables in
 * memory, on virtual time.
 */
import { newLease } from '../agent/rules/lease.ts';
import { withCondition } from '../agent/rules/node-conditions.ts';
import { nodeStatusPatch } from '../agent/rules/node-patch.ts';
import { finalPodDeletion, podStatusReport } from '../agent/rules/pod-requests.ts';
import { startedStatus } from '../agent/rules/started-pod.ts';
import { type MachineIdentity, nameMachines } from '../demo/fleet/names.ts';
import { computedNode, nodeAt } from '../demo/fleet/node-object.ts';
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import { formatTime } from '../shared/kubernetes/time.ts';
import { type ServedFleet, servedFleet } from '../test/support/served-fleet.ts';
import { type Benchmark, type Report, readOptions, rounded, wholeNumber } from './benchmark.ts';
import { type WriteCounter, type WriteCounts, writeCounter } from './counted-writes.ts';

const REGION = 'eu-central-1';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PODS = '/api/v1/namespaces/default/pods';
const LEASE_SECONDS = 40;
const TICK_SECONDS = 5;
const BEAT_SECONDS = 10;
/** Ticks until silent nodes are marked: some ten are needed. */
const TICKS_MAX = 20;
const contentType = 'application/strategic-merge-patch+json';

export const writeUnits: Benchmark = {
  name: 'write-units',
  about: 'write units of each kind of change, by kind of item: registration, status, pod, mark, eviction, deletion',
  usage: '[--nodes 60]',
  smallest: ['--nodes', '12'],
  async run(report, words) {
    const { nodes } = readOptions(words, { nodes: { type: 'string' } });
    const story = new Story(wholeNumber('nodes', nodes, { least: 12, most: 1_000, otherwise: 60 }));
    for (const { change, of = 1, act } of story.phases) {
      await act();
      const counts = story.counter.take();
      if (change !== undefined) reportChange(report, change, of, counts);
    }
  },
};

function reportChange(report: Report, change: string, of: number, counts: WriteCounts): void {
  let units = 0;
  let writes = 0;
  for (const [item, each] of [...counts].sort(([one], [other]) => (one < other ? -1 : 1))) {
    units += each.units;
    if (!item.endsWith('(check)')) writes += each.writes;
    const bytes = Math.round(each.bytes / each.writes);
    report({ change, item, writes: rounded(each.writes / of), units: rounded(each.units / of), bytes });
  }
  report({ change, item: 'all', writes: rounded(writes / of), units: rounded(units / of) });
}

interface Phase {
  /** Absent: it only prepares the next one. */
  readonly change?: string;
  /** How many objects change: figures are per object. */
  readonly of?: number;
  readonly act: () => Promise<unknown>;
}

class Story {
  readonly counter: WriteCounter = writeCounter();
  readonly #served: ServedFleet;
  readonly #machines: readonly MachineIdentity[];
  /** Pods with their machines. */
  readonly #pods: readonly { readonly path: string; readonly name: string; readonly nodeName: string }[];
  /** Machines of one zone that fail together: fewer than the share that makes a partial disruption. */
  readonly #failing: readonly MachineIdentity[];
  readonly #live: readonly MachineIdentity[];
  #seconds = 0;

  constructor(nodes: number) {
    this.#machines = nameMachines(nodes, ['zone-a', 'zone-b']);
    this.#failing = this.#machines.filter(({ zone }) => zone === 'zone-a').slice(0, nodes / 4);
    this.#live = this.#machines.filter((each) => !this.#failing.includes(each));
    this.#pods = this.#machines.slice(0, nodes / 3).map(({ name: nodeName }, index) => {
      const name = `web-7d9c6b8f4-${index.toString(36).padStart(5, 'x')}`;
      return { name, path: `${PODS}/${name}`, nodeName };
    });
    this.#served = servedFleet(
      this.#machines.map(({ name }) => name),
      {
        policy: { ingestGate: 'off', nodeEvictionRatePerSecond: 100 },
        between: (items) => this.counter.store(items),
        serving: (items) => this.counter.store(items),
      },
    );
  }

  get phases(): readonly Phase[] {
    const nodes = this.#machines.length;
    const pods = this.#pods.length;
    const failed = this.#failing.length;
    return [
      { act: () => this.#begin() },
      { change: 'registration', of: nodes, act: () => this.#register() },
      { act: () => this.#pass(20) },
      { change: 'status', of: nodes, act: () => this.#changeStatus() },
      { change: 'pod created', of: pods, act: () => this.#createPods() },
      { change: 'pod started', of: pods, act: () => this.#startPods() },
      { change: 'pod deleted', of: pods, act: () => this.#deletePods() },
      { change: 'pod removed', of: pods, act: () => this.#removePods() },
      { act: () => this.#pass(20) },
      { act: () => this.#createPods() },
      { act: () => this.#startPods() },
      { act: () => this.#pass(20) },
      { change: 'node marked (with its pods)', of: failed, act: () => this.#fail() },
      { change: 'streams after the mark', of: failed, act: () => this.#served.fleet.streams() },
      { change: 'node tainted NoExecute', of: failed, act: () => this.#pass(10, this.#live) },
      { change: 'evictions of its pods', of: failed, act: () => this.#pass(310, this.#live) },
      { change: 'node deleted', of: failed, act: () => this.#deleteFailed() },
    ];
  }

  /** Namespaces and the first ticks. */
  async #begin(): Promise<void> {
    await this.#served.send('GET', '/api/v1/namespaces');
    await this.#pass(10, []);
  }

  async #register(): Promise<void> {
    const { fleet } = this.#served;
    for (const machine of this.#machines) {
      const { name } = machine;
      const created = await this.#sendAs(name, 'POST', '/api/v1/nodes', nodeAt(machine, REGION, fleet.nowMs()));
      const lease = newLease(created, { leaseDurationSeconds: LEASE_SECONDS, nowMs: fleet.nowMs() });
      await this.#sendAs(name, 'POST', LEASES, lease);
      await fleet.streams();
      this.#seconds += 1;
      fleet.at(this.#seconds);
      await this.#postStatus(name, (read) => computedNode(machine, read, fleet.nowMs()));
    }
    this.#seconds = Math.ceil(this.#seconds / BEAT_SECONDS) * BEAT_SECONDS;
  }

  async #changeStatus(): Promise<void> {
    for (const { name } of this.#machines) {
      const now = formatTime(this.#served.fleet.nowMs());
      await this.#postStatus(name, (read) => {
        const conditions = withCondition(read.status?.conditions, {
          type: 'NetworkUnavailable',
          status: 'False',
          reason: 'NetworkPluginRestarted',
          message: 'pod network is up again',
          lastHeartbeatTime: now,
          lastTransitionTime: now,
        });
        return { ...read, status: { ...read.status, conditions } };
      });
    }
  }

  async #createPods(): Promise<void> {
    for (const { name, nodeName } of this.#pods) {
      const containers = [{ name: 'c', image: 'registry.example/app:1' }];
      await this.#served.send('POST', PODS, { body: { metadata: { name }, spec: { nodeName, containers } } });
      await this.#served.fleet.streams();
    }
  }

  async #startPods(): Promise<void> {
    for (const [index, { path, nodeName }] of this.#pods.entries()) {
      const pod = await this.#sendAs(nodeName, 'GET', path);
      const ip = `10.16.0.${index}`;
      const status = startedStatus(pod, this.#served.fleet.nowMs(), '10.16.0.10');
      const report = podStatusReport(pod, { ...status, podIP: ip, podIPs: [{ ip }] });
      await this.#sendAs(nodeName, 'PATCH', report.path, report.body);
      await this.#served.fleet.streams();
    }
  }

  async #deletePods(): Promise<void> {
    for (const { path } of this.#pods) {
      await this.#served.send('DELETE', `${path}?gracePeriodSeconds=1`);
      await this.#served.fleet.streams();
    }
  }

  async #removePods(): Promise<void> {
    for (const { path, nodeName } of this.#pods) {
      const removal = finalPodDeletion(await this.#sendAs(nodeName, 'GET', path));
      await this.#sendAs(nodeName, 'DELETE', removal.path, removal.body);
      await this.#served.fleet.streams();
    }
  }

  /** Until the tick that marks them, which alone is counted. */
  async #fail(): Promise<void> {
    const { fleet } = this.#served;
    const isMarked = async (): Promise<boolean> => (await fleet.ready(this.#failing[0]!.name)) !== 'True';
    for (let ticks = 0; ticks < TICKS_MAX && !(await isMarked()); ticks += 1) {
      await this.#advance(this.#live);
      this.counter.take();
      await fleet.controllers.tickNodeMonitor(fleet.slot());
    }
  }

  async #deleteFailed(): Promise<void> {
    for (const { name } of this.#failing) {
      await this.#served.send('DELETE', `/api/v1/nodes/${name}`);
      await this.#served.fleet.streams();
    }
  }

  async #pass(forSeconds: number, beating = this.#machines): Promise<void> {
    for (const untilSeconds = this.#seconds + forSeconds; this.#seconds < untilSeconds; ) {
      await this.#advance(beating);
      await this.#served.fleet.tick();
      if (this.#seconds % 20 === 0) await this.#served.fleet.collect();
    }
  }

  /** To the next tick. Heartbeats are not counted. */
  async #advance(beating: readonly MachineIdentity[]): Promise<void> {
    const { fleet } = this.#served;
    this.#seconds += TICK_SECONDS;
    fleet.at(this.#seconds);
    if (this.#seconds % BEAT_SECONDS !== 0) return;
    const renewTime = `${formatTime(fleet.nowMs()).slice(0, -1)}.000000Z`;
    await this.counter.pause(async () => {
      for (const { name } of beating) await this.#served.beatAs(name, { spec: { renewTime } });
    });
  }

  async #postStatus(name: string, next: (read: KubeNode) => KubeNode): Promise<void> {
    const path = `/api/v1/nodes/${name}`;
    const read: KubeNode = await this.#sendAs(name, 'GET', path);
    await this.#sendAs(name, 'PATCH', `${path}/status`, nodeStatusPatch(read, next(read)) ?? {});
    await this.#served.fleet.streams();
  }

  /** Sends as the identity of a machine. Returns the body. @throws on any answer but 2xx */
  async #sendAs(name: string, method: string, path: string, body?: unknown): Promise<KubeObject> {
    const send = { body, ...(method === 'PATCH' && { contentType }) };
    const answer = await this.#served.sendAs(name, method, path, send);
    if (answer.code >= 300) throw new Error(`${answer.code} ${answer.text}`);
    return answer.body;
  }
}
