/**
 * The events of a simulated fleet besides the injected faults. Machines crash, restart, report NotReady and lose their
 * instances. Zones lose power. Users bind pods, delete Nodes, taint them and write to them concurrently. All random
 * choices follow from the seed.
 */

import { podPath } from '../agent/rules/pod-requests.ts';
import type { MemoryCloud } from '../demo/ec2/cloud.ts';
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import { offlineStopSeconds } from '../shared/kinds/pods/offline-stop.ts';
import type { KubeNode, KubeObject, Taint } from '../shared/kinds/types.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Send } from './faults/faulty-network.ts';
import type { MachineClock } from './faults/lying-clocks.ts';
import { type DoorUse, type SendRequest, throughDoors } from './heartbeat-doors.ts';
import type { TrueMachine } from './laws/law.ts';
import { COUNTER } from './laws/truth.ts';
import type { CountedWrite } from './laws/writes.ts';
import { createMachine, type Machine } from './machine.ts';
import type { OfflineMachines } from './offline-machines.ts';
import type { SiteRelays } from './relays.ts';
import type { MachineSpec } from './scenario.ts';
import { oneOf } from './seeded-random.ts';
import { instanceIdOf, instanceOf } from './simulated-instance.ts';
import type { SiteWitnesses } from './site-witnesses.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Maximum delay of a heartbeat, as a share of the heartbeat interval. */
const BEAT_JITTER = 0.04;
/** Attempts at one heartbeat. */
const BEAT_ATTEMPTS_MAX = 4;
/** Wait between two attempts. Milliseconds. */
const BEAT_RETRY_MS = 700;
/** Mean durations and mean intervals of the events. Milliseconds. */
const MEAN_MS = {
  /** Between two events of one machine. */
  action: 1_500_000,
  off: 240_000,
  notReady: 120_000,
  zonePower: 1_800_000,
  blackout: 2_700_000,
  /** Between two actions of users, by kind. */
  count: 20_000,
  pods: 25_000,
  nodeDeletion: 1_500_000,
  outOfService: 600_000,
} as const;
const PODS_PER_NODE_MAX = 3;
const OUT_OF_SERVICE: Taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
const MERGE = 'application/merge-patch+json';

interface SimulatedMachine {
  readonly spec: MachineSpec;
  readonly zone: string;
  readonly door: DoorUse;
  readonly isRelayed: boolean;
  machine: Machine | undefined;
  /** Grows with every start. Loops of an earlier life stop when they see a new number. */
  life: number;
  isOn: boolean;
  /** Since when it is on or off. */
  sinceMs: number;
  lastCutMs: number;
  instance: TrueMachine['instance'];
  instanceEndedAtMs: number;
}

export interface Story {
  /** Registers all machines and starts all events. */
  begin(): Promise<void>;
  machine(name: string): TrueMachine | undefined;
  /** Switches a machine off for a while, if it is on. */
  crash(name: string, offMs: number): void;
  /** The link of a machine fails until then. */
  linkFails(name: string, untilMs: number): void;
  readonly machines: ReadonlyMap<string, TrueMachine>;
}

interface FleetStoryOptions {
  readonly nodes: number;
  readonly zones: number;
  readonly beatEveryMs: number;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly cloud: MemoryCloud;
  readonly cutZone: () => string | undefined;
  /** The clock of a machine with a wrong clock; undefined for the others. */
  readonly clockOf: (name: string) => MachineClock | undefined;
  /** The taints with which a machine registers. */
  readonly taintsOf: (name: string) => MachineSpec['taints'];
  /** Labels with which it registers, besides its zone. */
  readonly labelsOf: (name: string) => MachineSpec['labels'];
  /** The ways of its heartbeats. */
  readonly doorOf: (name: string) => DoorUse;
  /** What runs on its machines; undefined: every pod that is bound. */
  readonly running: OfflineMachines | undefined;
  /** False: machines fail only if others let them (`crash`), and people act on no Node. */
  readonly hasAccidents: boolean;
  /** The witnesses of its sites; undefined without any. */
  readonly witnesses: SiteWitnesses | undefined;
  /** The relays of its sites; undefined without any. */
  readonly relays: SiteRelays | undefined;
  readonly log: (subject: string, text: string) => void;
  readonly onAcknowledged: (write: CountedWrite) => void;
  readonly onConflict: () => void;
}

/** For a machine with pods of its own (running-pods.ts). */
const withoutPods = (view: ClusterView): ClusterView => ({ ...view, nodes: view.nodes, podsOf: () => [] });

export function createStory(options: FleetStoryOptions): Story {
  return new FleetStory(options);
}

class FleetStory implements Story {
  readonly #options: FleetStoryOptions;
  readonly machines = new Map<string, SimulatedMachine>();
  readonly #all: SimulatedMachine[] = [];
  #pods = 0;
  #writes = 0;

  constructor(options: FleetStoryOptions) {
    this.#options = options;
  }

  machine(name: string): TrueMachine | undefined {
    return this.machines.get(name);
  }

  crash(name: string, offMs: number): void {
    const machine = this.machines.get(name);
    if (machine?.isOn === true) void this.#offFor(machine, offMs, 'crashed');
  }

  linkFails(name: string, untilMs: number): void {
    const machine = this.machines.get(name);
    if (machine !== undefined) machine.lastCutMs = Math.max(machine.lastCutMs, untilMs);
  }

  async begin(): Promise<void> {
    for (let index = 0; index < this.#options.nodes; index += 1) this.#addMachine(index);
    for (const machine of [...this.#all]) {
      const { spec, zone } = machine;
      const endpoint = {
        failShare: 0,
        send: (request: EndpointRequest) => this.#options.send(request, { zone, isGone: () => false }),
      };
      void createMachine(spec, endpoint, this.#options.view, this.#options.clockOf(spec.name))
        .register(this.#options.time.nowMs())
        .then(() => this.#switchOn(machine));
      if (this.#options.hasAccidents) void this.#actRepeatedly(machine);
    }
    for (let writer = 0; writer < 2; writer += 1) void this.#repeatRandomly(MEAN_MS.count, () => this.#count());
    void this.#repeatRandomly(MEAN_MS.pods, () => this.#bindPod());
    void this.#repeatRandomly(MEAN_MS.pods, () => this.#bindPod());
    if (!this.#options.hasAccidents) return;
    void this.#repeatRandomly(MEAN_MS.nodeDeletion, () => this.#deleteNode());
    void this.#repeatRandomly(MEAN_MS.outOfService / 4, () => this.#outOfService());
    void this.#repeatRandomly(MEAN_MS.zonePower, () => this.#zonePower());
    void this.#repeatRandomly(MEAN_MS.blackout, () => this.#blackout());
  }

  #chance(share: number): boolean {
    return this.#options.fraction() < share;
  }

  #between(least: number, most: number): number {
    return least + this.#options.fraction() * (most - least);
  }

  #exponential(meanMs: number): number {
    return -Math.log(1 - this.#options.fraction()) * meanMs;
  }

  #oneOf<T>(things: readonly T[]): T | undefined {
    return oneOf(things, this.#options.fraction);
  }

  #isDone({ status }: EndpointAnswer): boolean {
    return status === 200 || status === 201;
  }

  #asOperator(request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> {
    return this.#options.send({ who: OPERATOR, ...request }, { isGone: () => false });
  }

  /** Adds a machine. Every second one has an EC2 instance. */
  #addMachine(index: number): SimulatedMachine {
    const zone = `zone-${index % this.#options.zones}`;
    const hasInstance = index % 2 === 0;
    const name = `m-${index}`;
    const spec: MachineSpec = {
      name,
      labels: { [ZONE_LABEL]: zone, ...this.#options.labelsOf(name) },
      taints: this.#options.taintsOf(name),
      podCount: 0,
      hasInstance,
      beating: true,
      ageMs: 0,
      clockOffsetMs: Math.round((this.#options.fraction() - 0.5) * 3_600_000),
      beatEveryMs: this.#options.beatEveryMs,
      phaseMs: Math.floor(this.#options.fraction() * this.#options.beatEveryMs),
    };
    const machine: SimulatedMachine = {
      spec,
      zone,
      door: this.#options.doorOf(name),
      isRelayed: this.#options.relays?.isUsedBy(name) ?? false,
      machine: undefined,
      life: 0,
      isOn: false,
      sinceMs: this.#options.time.nowMs(),
      lastCutMs: Number.NEGATIVE_INFINITY,
      instance: hasInstance ? 'lives' : 'none',
      instanceEndedAtMs: 0,
    };
    // Half of the instances are older than cloudYoungInstanceSeconds at the start.
    if (hasInstance)
      this.#options.cloud.put(instanceOf(spec, this.#options.time.nowMs() - (index % 4 === 0 ? 3_600_000 : 0)));
    this.machines.set(name, machine);
    this.#all.push(machine);
    return machine;
  }

  /** Whether a network partition separates the machine from the API. */
  #isCut(machine: SimulatedMachine): boolean {
    return (
      this.#options.plan.severity('siteCut') > 0 ||
      (this.#options.plan.severity('zoneCut') > 0 && this.#options.cutZone() === machine.zone)
    );
  }

  /** Sends heartbeats until the machine is switched off. */
  async #live(machine: SimulatedMachine, life: number): Promise<void> {
    const isGone = (): boolean => machine.life !== life || !machine.isOn;
    const { relays, running, witnesses } = this.#options;
    const reaching: SendRequest = throughDoors(
      (request) => this.#options.send(request, { zone: machine.zone, isGone }),
      machine.door,
      machine.spec.name,
      this.#options.time.nowMs,
    );
    const { spec, zone, isRelayed } = machine;
    const direct = running?.boot(spec.name, reaching, isGone) ?? reaching;
    const intervalMs = (): number => machine.machine?.beatEveryMs ?? spec.beatEveryMs;
    const site = { name: spec.name, zone, intervalMs, isGone };
    const routed = isRelayed && relays !== undefined ? relays.through(site, direct) : direct;
    const counted = running?.counting(spec.name, routed, isGone) ?? routed;
    const send = witnesses?.reporting(spec.name, counted) ?? counted;
    const endpoint = { failShare: 0, send };
    const view = running === undefined ? this.#options.view : withoutPods(this.#options.view);
    const kubelet = createMachine(machine.spec, endpoint, view, this.#options.clockOf(machine.spec.name));
    machine.machine = kubelet;
    await this.#options.time.sleep(machine.spec.phaseMs);
    while (!isGone()) {
      if (this.#isCut(machine)) this.linkFails(spec.name, this.#options.time.nowMs());
      const began = this.#options.time.nowMs();
      for (let attempts = 0; attempts < BEAT_ATTEMPTS_MAX && !isGone(); attempts += 1) {
        if (this.#isDone(await kubelet.act(this.#options.time.nowMs()))) break;
        if (this.#isCut(machine)) this.linkFails(spec.name, this.#options.time.nowMs());
        await this.#options.time.sleep(BEAT_RETRY_MS);
      }
      const nextMs = began + kubelet.beatEveryMs * (1 + BEAT_JITTER * this.#options.fraction());
      const waitMs = Math.max(BEAT_RETRY_MS, nextMs - this.#options.time.nowMs());
      await (witnesses?.untilNextBeat(spec.name, waitMs) ?? this.#options.time.sleep(waitMs));
    }
  }

  #switchOn(machine: SimulatedMachine): void {
    if (machine.isOn || machine.instance === 'ended') return;
    machine.isOn = true;
    machine.life += 1;
    machine.sinceMs = this.#options.time.nowMs();
    this.#options.log(machine.spec.name, 'the machine starts');
    void this.#live(machine, machine.life);
  }

  #switchOff(machine: SimulatedMachine, why: string): void {
    if (!machine.isOn) return;
    machine.isOn = false;
    machine.machine = undefined;
    this.#options.running?.powerOff(machine.spec.name);
    machine.sinceMs = this.#options.time.nowMs();
    this.#options.log(machine.spec.name, `the machine is off: ${why}`);
  }

  async #offFor(machine: SimulatedMachine, offMs: number, why: string): Promise<void> {
    this.#switchOff(machine, why);
    await this.#options.time.sleep(offMs);
    this.#switchOn(machine);
  }

  #endInstance(machine: SimulatedMachine, how: 'terminate' | 'vanish'): void {
    if (machine.instance !== 'lives') return;
    this.#options.cloud[how](instanceIdOf(machine.spec));
    machine.instance = 'ended';
    machine.instanceEndedAtMs = this.#options.time.nowMs();
    this.#switchOff(machine, `its instance terminated (${how})`);
    // Another machine replaces it.
    this.#options.time.after(this.#between(60_000, 400_000), () => this.#switchOn(this.#addMachine(this.#all.length)));
  }

  async #reportReady(
    machine: SimulatedMachine,
    ready: 'True' | 'False',
    more: Record<string, 'True' | 'False'>,
  ): Promise<void> {
    this.#options.log(machine.spec.name, `the machine says Ready=${ready}`);
    await machine.machine?.post(this.#options.time.nowMs(), { Ready: ready, ...more });
  }

  async #notReadyForAWhile(machine: SimulatedMachine): Promise<void> {
    await Promise.race([
      this.#reportReady(machine, 'False', { DiskPressure: 'True' }),
      this.#options.time.sleep(10_000),
    ]);
    await this.#options.time.sleep(this.#exponential(MEAN_MS.notReady));
    await Promise.race([
      this.#reportReady(machine, 'True', { DiskPressure: 'False' }),
      this.#options.time.sleep(10_000),
    ]);
  }

  /** One random event of a machine. Resolves when the event is over. */
  async #act(machine: SimulatedMachine): Promise<void> {
    if (!machine.isOn) return;
    const what = this.#options.fraction();
    const offMs = 20_000 + this.#exponential(MEAN_MS.off);
    if (what < 0.4) return this.#offFor(machine, offMs, 'crashed');
    if (what < 0.47) return this.#offFor(machine, this.#between(2_000, 30_000), 'restarts');
    if (what < 0.55) {
      await this.#offFor(machine, offMs, 'crashed, and restarts not ready');
      return this.#notReadyForAWhile(machine);
    }
    if (what < 0.75) {
      if (this.#chance(0.6)) return this.#notReadyForAWhile(machine);
      await Promise.race([this.#reportReady(machine, 'False', {}), this.#options.time.sleep(10_000)]);
      await this.#options.time.sleep(this.#exponential(MEAN_MS.notReady));
      return this.#offFor(machine, offMs, 'crashed, and was not ready before');
    }
    if (machine.instance !== 'lives') return this.#offFor(machine, offMs, 'crashed');
    if (what < 0.85) {
      const id = instanceIdOf(machine.spec);
      this.#options.cloud.stop(id);
      this.#switchOff(machine, 'its instance is stopped');
      await this.#options.time.sleep(offMs);
      // The instance may have been terminated in the meantime.
      if ((machine.instance as TrueMachine['instance']) === 'lives') this.#options.cloud.start(id);
      this.#switchOn(machine);
      return;
    }
    this.#endInstance(machine, what < 0.95 ? 'terminate' : 'vanish');
  }

  async #actRepeatedly(machine: SimulatedMachine): Promise<void> {
    while (machine.instance !== 'ended') {
      await this.#options.time.sleep(this.#exponential(MEAN_MS.action));
      await this.#act(machine);
    }
  }

  /** Repeats an action at random intervals, for ever. */
  async #repeatRandomly(meanMs: number, what: () => Promise<void> | void): Promise<void> {
    for (;;) {
      await this.#options.time.sleep(1_000 + this.#exponential(meanMs));
      await what();
    }
  }

  async #zonePower(): Promise<void> {
    const zone = `zone-${Math.floor(this.#options.fraction() * this.#options.zones)}`;
    const share = this.#chance(0.5) ? 1 : this.#between(0.3, 0.9);
    const victims = this.#all.filter((machine) => machine.zone === zone && this.#chance(share));
    const offMs = 60_000 + this.#exponential(MEAN_MS.off);
    for (const victim of victims)
      void this.#offFor(victim, offMs + this.#between(0, 20_000), `power of ${zone} is lost`);
    await this.#options.time.sleep(offMs);
  }

  async #blackout(): Promise<void> {
    const offMs = 90_000 + this.#exponential(MEAN_MS.off);
    for (const victim of [...this.#all])
      void this.#offFor(victim, offMs + this.#between(0, 60_000), 'power is lost everywhere');
    await this.#options.time.sleep(offMs);
  }

  #tolerations(): unknown[] {
    const what = this.#options.fraction();
    if (what < 0.35) return [];
    if (what < 0.5) return [{ operator: 'Exists' }];
    const tolerationSeconds = Math.floor(this.#between(0, 90));
    const keys = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready'];
    const kept = what < 0.6 ? keys.slice(0, 1) : keys;
    return kept.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));
  }

  async #bindPod(): Promise<void> {
    const node = this.#oneOf([...this.#options.view.nodes.keys()]);
    if (this.#chance(0.06)) return this.#finishPod();
    if (node === undefined || [...this.#options.view.podsOf(node)].length >= PODS_PER_NODE_MAX) return;
    this.#pods += 1;
    await this.#asOperator({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `pod-${this.#pods}`, namespace: 'default' },
        spec: {
          ...(this.#chance(0.95) ? { nodeName: node } : {}),
          tolerations: this.#tolerations(),
          terminationGracePeriodSeconds: Math.floor(this.#between(0, 30)),
          containers: [{ name: 'main', image: 'registry.example/main:1' }],
        },
      },
    });
  }

  /** A pod completes, or a user deletes it. */
  async #finishPod(): Promise<void> {
    // With this status a person vouches for a pod that must not run twice.
    const pods = [...this.#options.view.pods.values()].filter((each) => offlineStopSeconds(each) === undefined);
    const pod = this.#oneOf(pods);
    if (pod === undefined) return;
    if (this.#chance(0.5)) await this.#asOperator({ method: 'DELETE', path: podPath(pod) });
    else {
      await this.#asOperator({
        method: 'PATCH',
        path: `${podPath(pod)}/status`,
        body: { status: { phase: 'Succeeded' } },
        contentType: MERGE,
      });
    }
  }

  async #deleteNode(): Promise<void> {
    const machine = this.#oneOf(this.#all.filter(({ spec }) => this.#options.view.nodes.has(spec.name)));
    if (machine === undefined) return;
    this.#options.log(machine.spec.name, 'a person deletes the Node');
    await this.#asOperator({ method: 'DELETE', path: `/api/v1/nodes/${machine.spec.name}` });
  }

  /** A user sets the out-of-service taint on a machine that is off for long, and removes it when the machine is on. */
  async #outOfService(): Promise<void> {
    for (const { spec, isOn, sinceMs } of this.#all) {
      const node = this.#options.view.nodes.get(spec.name);
      const taints = node?.spec?.taints ?? [];
      const isDeclared = taints.some(({ key }) => key === OUT_OF_SERVICE.key);
      const isLongOff = !isOn && this.#options.time.nowMs() - sinceMs > 90_000;
      if (node === undefined || isDeclared === isLongOff || (isLongOff && this.#chance(0.6))) continue;
      this.#options.log(spec.name, `a person ${isDeclared ? 'lifts' : 'sets'} the out-of-service taint`);
      const next = isDeclared ? taints.filter(({ key }) => key !== OUT_OF_SERVICE.key) : [...taints, OUT_OF_SERVICE];
      await this.#asOperator({
        method: 'PATCH',
        path: `/api/v1/nodes/${spec.name}`,
        body: { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints: next } },
        contentType: MERGE,
      });
      return;
    }
  }

  /** Up to three users increment the counter of one Node concurrently (L8). */
  async #count(): Promise<void> {
    const name = this.#oneOf([...this.#options.view.nodes.keys()]);
    if (name === undefined) return;
    await Promise.all(Array.from({ length: 1 + Math.floor(this.#options.fraction() * 3) }, () => this.#countUp(name)));
  }

  /** Reads a Node, increments the counter in its annotation and writes it back. */
  async #countUp(name: string): Promise<void> {
    const path = `/api/v1/nodes/${name}`;
    const found = await this.#asOperator({ method: 'GET', path });
    if (!this.#isDone(found)) return;
    const node = found.body as KubeNode;
    this.#writes += 1;
    const token = `w${this.#writes}`;
    const counted = Number((node.metadata.annotations?.[COUNTER] ?? '0:').split(':')[0]) + 1;
    const annotations = { ...node.metadata.annotations, [COUNTER]: `${counted}:${token}` };
    const body: KubeObject = { ...node, metadata: { ...node.metadata, annotations } };
    const answer = await this.#asOperator({ method: 'PUT', path, body });
    if (answer.status === 409) this.#options.onConflict();
    if (!this.#isDone(answer)) return;
    this.#options.onAcknowledged({
      nodeName: name,
      uid: node.metadata.uid ?? '',
      resourceVersion: node.metadata.resourceVersion ?? '',
      token,
    });
  }
}
