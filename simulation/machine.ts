/**
 * One simulated machine on virtual time: the requests of a node to the API.
 *
 * At each slot it renews its Lease, reports its status when that is due, reports pods that were bound to it as running,
 * and confirms deleted pods after their grace period. It sees its Node and pods as a watch cache does.
 *
 * The rules of the agent (agent/rules) decide what is sent and what an answer means. These things are different:
 * - Slots are fixed by the scenario, and status reports have no random delay: a run depends on its seed alone.
 * - A refused request is not repeated before the next slot, which is as late as any wait of the agent. Only a conflict
 *   on the Lease and a missing Node are resolved at once.
 * - A pod runs as soon as the machine sees it, and stops when its grace period is over.
 */
import { answeredTiming, LEASES_PATH, leasePath, nodePath } from '../agent/rules/lease.ts';
import { leaseRead, leaseWrite } from '../agent/rules/lease-answers.ts';
import { nodeAnswer } from '../agent/rules/node-answers.ts';
import { nodeStatusPatch } from '../agent/rules/node-patch.ts';
import { finalPodDeletion, podStatusReport } from '../agent/rules/pod-requests.ts';
import { registrationAnswer } from '../agent/rules/registration-answers.ts';
import { needsStartedStatus, resizedStatus, startedStatus } from '../agent/rules/started-pod.ts';
import { nodeChanged, reportDue } from '../agent/rules/status-report.ts';
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import type { ConditionStatus } from '../shared/kubernetes/kubernetes.ts';
import { parseTimeMs } from '../shared/kubernetes/time.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Endpoint, EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { MachineClock } from './faults/lying-clocks.ts';
import {
  computedNode,
  createdLease,
  healthyConditions,
  type MachineAtTime,
  nextLease,
  registeredNode,
  writtenNode,
} from './machine-node.ts';
import { startedEvent, timedStatus } from './machine-pods.ts';
import type { MachineSpec } from './scenario.ts';

export const STATUS_EVERY_MS = 300_000;
/** Pods that are started in one slot at most. */
const STARTS_MAX = 20;
/** Half of the range: the delay of a status report is 0. */
const NO_DELAY_FRACTION = 0.5;

export interface Machine {
  readonly spec: MachineSpec;
  readonly beating: boolean;
  /** Heartbeat interval that the last answer asked for; that of the scenario without one. Milliseconds. */
  readonly beatEveryMs: number;
  /** Registers its Node with its first status. */
  register(nowMs: number): Promise<EndpointAnswer>;
  /** One slot. `urgent`: reports the status even if that is not due, as after a restart. */
  act(nowMs: number, options?: { readonly urgent?: boolean }): Promise<EndpointAnswer>;
  /** Reports status once. From then on the machine reports these conditions too. */
  post(nowMs: number, conditions: Readonly<Record<string, ConditionStatus>>): Promise<EndpointAnswer>;
  /** Confirms deleted pods after their grace period. */
  confirmPods(nowMs: number): Promise<void>;
  silence(): void;
  start(): void;
}

/** `clock`: wrong times and counts that the machine writes; undefined for a machine with a correct clock. */
export const createMachine = (
  spec: MachineSpec,
  endpoint: Endpoint,
  view: ClusterView,
  clock: MachineClock | undefined = undefined,
): Machine => new SimulatedMachine(spec, endpoint, view, clock);

class SimulatedMachine implements Machine {
  readonly spec: MachineSpec;
  readonly #endpoint: Endpoint;
  readonly #view: ClusterView;
  readonly #clock: MachineClock | undefined;
  readonly #reported = healthyConditions();
  #beating: boolean;
  #lease: KubeObject | undefined;
  /** Undefined before the first report, and after one that failed: the next slot reports. */
  #reportedAtMs: number | undefined;
  /** The last Node that was equal to the state that the machine reports. */
  #unchangedNode: KubeNode | undefined;

  constructor(spec: MachineSpec, endpoint: Endpoint, view: ClusterView, clock: MachineClock | undefined) {
    this.spec = spec;
    this.#endpoint = endpoint;
    this.#view = view;
    this.#clock = clock;
    this.#beating = spec.beating;
  }

  get beating(): boolean {
    return this.#beating;
  }

  get beatEveryMs(): number {
    return (this.#lease === undefined ? undefined : answeredTiming(this.#lease))?.intervalMs ?? this.spec.beatEveryMs;
  }

  async register(nowMs: number): Promise<EndpointAnswer> {
    const body = registeredNode(this.#at(nowMs));
    const answer = await this.#send({ method: 'POST', path: '/api/v1/nodes', body });
    this.#lease = undefined;
    const registration = registrationAnswer(answered(answer), this.spec.name);
    if (registration.kind === 'registered') this.#reportedAtMs = nowMs;
    else if (registration.kind === 'mayExist') this.#reportedAtMs = undefined;
    return answer;
  }

  async act(nowMs: number, { urgent = false } = {}): Promise<EndpointAnswer> {
    const beat = await this.#renew(nowMs);
    if ((urgent && this.#reportedAtMs !== nowMs) || this.#isReportDue(nowMs)) await this.#reportStatus(nowMs);
    await this.#runPods(nowMs);
    await this.confirmPods(nowMs);
    return beat;
  }

  async post(nowMs: number, conditions: Readonly<Record<string, ConditionStatus>>): Promise<EndpointAnswer> {
    for (const [type, status] of Object.entries(conditions)) this.#reported.set(type, status);
    this.#unchangedNode = undefined;
    return this.#reportStatus(nowMs);
  }

  async confirmPods(nowMs: number): Promise<void> {
    for (const pod of [...this.#view.podsOf(this.spec.name)]) {
      const endsAtMs = parseTimeMs(pod.metadata.deletionTimestamp);
      if (endsAtMs === undefined || endsAtMs > nowMs) continue;
      await this.#send(finalPodDeletion(pod));
    }
  }

  silence(): void {
    this.#beating = false;
  }

  start(): void {
    this.#beating = true;
  }

  #at(nowMs: number): MachineAtTime {
    return { spec: this.spec, clock: this.#clock, reported: this.#reported, nowMs };
  }

  #send(request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> {
    return this.#endpoint.send({ who: this.spec.name, ...request });
  }

  #node(): KubeNode | undefined {
    return this.#view.nodes.get(this.spec.name);
  }

  #isReportDue(nowMs: number): boolean {
    const node = this.#node();
    const changed = this.#isChanged(node, nowMs);
    const due = reportDue(
      { lastReportAtMs: this.#reportedAtMs, delayMs: 0 },
      {
        changed,
        nowMs,
        reportFrequencyMs: STATUS_EVERY_MS,
        fraction: () => NO_DELAY_FRACTION,
      },
    );
    return due !== undefined;
  }

  /** A Node that was compared once is not compared again: the view replaces a Node that changes. */
  #isChanged(node: KubeNode | undefined, nowMs: number): boolean {
    if (node === undefined || node === this.#unchangedNode) return false;
    if (nodeChanged(node, computedNode(this.#at(nowMs), node))) return true;
    this.#unchangedNode = node;
    return false;
  }

  async #reportStatus(nowMs: number): Promise<EndpointAnswer> {
    const found = this.#node() ?? { metadata: { name: this.spec.name } };
    const answer = await this.#send({
      method: 'PATCH',
      path: `${nodePath(this.spec.name)}/status`,
      body: nodeStatusPatch(found, writtenNode(this.#at(nowMs), found)) ?? {},
      contentType: 'application/strategic-merge-patch+json',
    });
    this.#reportedAtMs = nodeAnswer(answered(answer), () => 0).kind === 'node' ? nowMs : undefined;
    return answer;
  }

  async #renew(nowMs: number): Promise<EndpointAnswer> {
    const { name } = this.spec;
    if (this.#lease === undefined) {
      const found = await this.#readLease();
      const read = leaseRead(answered(found), name);
      if (read.kind === 'missing') return this.#createLease(nowMs);
      if (read.kind === 'failed') return found;
      this.#lease = read.lease;
    }
    let answer = await this.#putLease(nowMs, this.#lease);
    if (leaseWrite(answered(answer), name).kind === 'conflict') {
      const read = leaseRead(answered(await this.#readLease()), name);
      if (read.kind === 'found') {
        this.#lease = read.lease;
        answer = await this.#putLease(nowMs, read.lease);
      }
    }
    const written = leaseWrite(answered(answer), name);
    if (written.kind === 'missing') {
      this.#lease = undefined;
      return this.#createLease(nowMs);
    }
    if (written.kind === 'written') this.#lease = written.lease;
    return answer;
  }

  #readLease(): Promise<EndpointAnswer> {
    return this.#send({ method: 'GET', path: leasePath(this.spec.name) });
  }

  #putLease(nowMs: number, known: KubeObject): Promise<EndpointAnswer> {
    const body = nextLease(this.#at(nowMs), known, this.#node());
    return this.#send({ method: 'PUT', path: leasePath(this.spec.name), body });
  }

  /** The Lease does not exist: the Node may not exist either. */
  async #createLease(nowMs: number): Promise<EndpointAnswer> {
    const { name } = this.spec;
    const found = await this.#send({ method: 'GET', path: nodePath(name) });
    const read = nodeAnswer(answered(found), () => 0);
    if (read.kind === 'failed') return found;
    let owner = read.kind === 'node' ? read.node : undefined;
    if (owner === undefined) {
      const created = await this.register(nowMs);
      const registration = registrationAnswer(answered(created), name);
      if (registration.kind !== 'registered') return created;
      owner = registration.node;
    }
    const body = createdLease(this.#at(nowMs), owner);
    const answer = await this.#send({ method: 'POST', path: LEASES_PATH, body });
    const written = leaseWrite(answered(answer), name);
    if (written.kind === 'written') this.#lease = written.lease;
    return answer;
  }

  async #runPods(nowMs: number): Promise<void> {
    let started = 0;
    for (const pod of [...this.#view.podsOf(this.spec.name)]) {
      if (started === STARTS_MAX) break;
      if (pod.metadata.deletionTimestamp !== undefined) continue;
      const resized = needsStartedStatus(pod) ? undefined : this.#resizedStatus(pod, nowMs);
      if (resized !== undefined) await this.#send(podStatusReport(pod, resized));
      if (!needsStartedStatus(pod)) continue;
      started += 1;
      await this.#reportStarted(pod, nowMs);
    }
  }

  #resizedStatus(pod: KubeObject, nowMs: number) {
    const { name, clockOffsetMs } = this.spec;
    const node = this.#view.nodes.get(name) ?? { metadata: {} };
    return resizedStatus(pod, () => this.#view.podsOf(name), node, nowMs + clockOffsetMs);
  }

  async #reportStarted(pod: KubeObject, nowMs: number): Promise<void> {
    const clock = this.#clock;
    const status =
      clock === undefined
        ? startedStatus(pod, nowMs + this.spec.clockOffsetMs, undefined)
        : timedStatus(pod, nowMs, clock);
    await this.#send(podStatusReport(pod, status));
    if (clock === undefined) return;
    const path = '/api/v1/namespaces/default/events';
    await this.#send({ method: 'POST', path, body: startedEvent(pod, nowMs, clock) });
  }
}

/** An answer of the endpoint as the rules of the agent read it. Every request is answered here. */
const answered = ({ status, body }: EndpointAnswer) => ({ kind: 'answered' as const, status, body });
