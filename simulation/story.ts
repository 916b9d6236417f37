/**
 * What happens to a simulated fleet besides faults: machines crash, come back, say that they are not ready, lose their
 * instances; zones lose power; people bind pods, delete Nodes, taint them and write to them at the same time. All from a seed.
 */

import { podPath } from '../agent/rules/pod-requests.ts';
import type { MemoryCloud } from '../shared/adapters/memory/cloud.ts';
import { ZONE_LABEL } from '../shared/domain/zones/zone.ts';
import type { KubeNode, KubeObject, Taint } from '../shared/kube/types.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Send } from './faults/faulty-network.ts';
import type { MachineClock } from './faults/lying-clocks.ts';
import type { TrueMachine } from './laws/law.ts';
import { COUNTER } from './laws/truth.ts';
import type { CountedWrite } from './laws/writes.ts';
import { createMachine, type Machine } from './machine.ts';
import type { MachineSpec } from './scenario.ts';
import { instanceIdOf, instanceOf } from './simulated-instance.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Of beats, as a share of their interval. */
const BEAT_JITTER = 0.04;
/** Tries at one beat, and the wait between them. Milliseconds. */
const BEAT_TRIES_MAX = 4;
const TRY_AGAIN_MS = 700;
const MEAN_MS = {
  /** Between two deeds of one machine. */
  deed: 1_500_000,
  off: 240_000,
  notReady: 120_000,
  zonePower: 1_800_000,
  blackout: 2_700_000,
  /** Between two of the kind by people. */
  count: 20_000,
  pods: 25_000,
  nodeDeletion: 1_500_000,
  outOfService: 600_000,
} as const;
const PODS_A_NODE_MAX = 3;
const OUT_OF_SERVICE: Taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
const MERGE = 'application/merge-patch+json';

interface SimulatedMachine {
  readonly spec: MachineSpec;
  readonly zone: string;
  machine: Machine | undefined;
  /** Grows with every start: what an earlier life began ends with it. */
  life: number;
  isOn: boolean;
  sinceMs: number;
  lastCutMs: number;
  instance: TrueMachine['instance'];
  instanceEndedAtMs: number;
}

export interface Story {
  /** Everybody registers and begins. */
  begin(): Promise<void>;
  machine(name: string): TrueMachine | undefined;
  /** Switches a machine off for a while, if it is on. */
  crash(name: string, offMs: number): void;
  readonly machines: ReadonlyMap<string, unknown>;
}

export function tellStory(options: {
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
  /** Of a machine whose clock may lie; absent for all others. */
  readonly clockOf: (name: string) => MachineClock | undefined;
  /** With which a machine registers. */
  readonly taintsOf: (name: string) => MachineSpec['taints'];
  readonly tell: (subject: string, text: string) => void;
  readonly onAcknowledged: (write: CountedWrite) => void;
  readonly onConflict: () => void;
}): Story {
  const { time, plan, fraction, send, view, cloud, tell } = options;
  const machines = new Map<string, SimulatedMachine>();
  const all: SimulatedMachine[] = [];
  let pods = 0;
  let writes = 0;

  const chance = (share: number): boolean => fraction() < share;
  const between = (least: number, most: number): number => least + fraction() * (most - least);
  const exponential = (meanMs: number): number => -Math.log(1 - fraction()) * meanMs;
  const oneOf = <T>(things: readonly T[]): T | undefined => things[Math.floor(fraction() * things.length)];
  const isDone = ({ status }: EndpointAnswer): boolean => status === 200 || status === 201;
  const asOperator = (request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> =>
    send({ who: OPERATOR, ...request }, { isGone: () => false });

  function enlist(index: number): SimulatedMachine {
    const zone = `zone-${index % options.zones}`;
    const hasInstance = index % 2 === 0;
    const name = `m-${index}`;
    const spec: MachineSpec = {
      name,
      labels: { [ZONE_LABEL]: zone },
      taints: options.taintsOf(name),
      podCount: 0,
      hasInstance,
      beating: true,
      ageMs: 0,
      clockOffsetMs: Math.round((fraction() - 0.5) * 3_600_000),
      beatEveryMs: options.beatEveryMs,
      phaseMs: Math.floor(fraction() * options.beatEveryMs),
    };
    const machine: SimulatedMachine = {
      spec,
      zone,
      machine: undefined,
      life: 0,
      isOn: false,
      sinceMs: time.nowMs(),
      lastCutMs: Number.NEGATIVE_INFINITY,
      instance: hasInstance ? 'lives' : 'none',
      instanceEndedAtMs: 0,
    };
    // Half of the instances are old enough for EC2's word of them to count from the start.
    if (hasInstance) cloud.put(instanceOf(spec, time.nowMs() - (index % 4 === 0 ? 3_600_000 : 0)));
    machines.set(name, machine);
    all.push(machine);
    return machine;
  }

  const isCut = (machine: SimulatedMachine): boolean =>
    plan.severity('siteCut') > 0 || (plan.severity('zoneCut') > 0 && options.cutZone() === machine.zone);

  async function live(machine: SimulatedMachine, life: number): Promise<void> {
    const isGone = (): boolean => machine.life !== life || !machine.isOn;
    const endpoint = {
      failShare: 0,
      send: (request: EndpointRequest) => send(request, { zone: machine.zone, isGone }),
    };
    const kubelet = createMachine(machine.spec, endpoint, view, options.clockOf(machine.spec.name));
    machine.machine = kubelet;
    await time.sleep(machine.spec.phaseMs);
    while (!isGone()) {
      if (isCut(machine)) machine.lastCutMs = time.nowMs();
      const began = time.nowMs();
      for (let tries = 0; tries < BEAT_TRIES_MAX && !isGone(); tries += 1) {
        if (isDone(await kubelet.act(time.nowMs()))) break;
        if (isCut(machine)) machine.lastCutMs = time.nowMs();
        await time.sleep(TRY_AGAIN_MS);
      }
      const nextMs = began + machine.spec.beatEveryMs * (1 + BEAT_JITTER * fraction());
      await time.sleep(Math.max(TRY_AGAIN_MS, nextMs - time.nowMs()));
    }
  }

  function switchOn(machine: SimulatedMachine): void {
    if (machine.isOn || machine.instance === 'ended') return;
    machine.isOn = true;
    machine.life += 1;
    machine.sinceMs = time.nowMs();
    tell(machine.spec.name, 'the machine starts');
    void live(machine, machine.life);
  }

  function switchOff(machine: SimulatedMachine, why: string): void {
    if (!machine.isOn) return;
    machine.isOn = false;
    machine.machine = undefined;
    machine.sinceMs = time.nowMs();
    tell(machine.spec.name, `the machine is off: ${why}`);
  }

  async function offFor(machine: SimulatedMachine, offMs: number, why: string): Promise<void> {
    switchOff(machine, why);
    await time.sleep(offMs);
    switchOn(machine);
  }

  function endInstance(machine: SimulatedMachine, how: 'terminate' | 'vanish'): void {
    if (machine.instance !== 'lives') return;
    cloud[how](instanceIdOf(machine.spec));
    machine.instance = 'ended';
    machine.instanceEndedAtMs = time.nowMs();
    switchOff(machine, `its instance is gone (${how})`);
    // Another one takes its place.
    time.after(between(60_000, 400_000), () => switchOn(enlist(all.length)));
  }

  async function say(
    machine: SimulatedMachine,
    ready: 'True' | 'False',
    more: Record<string, 'True' | 'False'>,
  ): Promise<void> {
    tell(machine.spec.name, `the machine says Ready=${ready}`);
    await machine.machine?.post(time.nowMs(), { Ready: ready, ...more });
  }

  async function notReadyForAWhile(machine: SimulatedMachine): Promise<void> {
    await Promise.race([say(machine, 'False', { DiskPressure: 'True' }), time.sleep(10_000)]);
    await time.sleep(exponential(MEAN_MS.notReady));
    await Promise.race([say(machine, 'True', { DiskPressure: 'False' }), time.sleep(10_000)]);
  }

  /** Something befalls a machine; ends when it is over. */
  async function deed(machine: SimulatedMachine): Promise<void> {
    if (!machine.isOn) return;
    const what = fraction();
    const offMs = 20_000 + exponential(MEAN_MS.off);
    if (what < 0.4) return offFor(machine, offMs, 'crashed');
    if (what < 0.47) return offFor(machine, between(2_000, 30_000), 'restarts');
    if (what < 0.55) {
      await offFor(machine, offMs, 'crashed, and comes back not ready');
      return notReadyForAWhile(machine);
    }
    if (what < 0.75) {
      if (chance(0.6)) return notReadyForAWhile(machine);
      await Promise.race([say(machine, 'False', {}), time.sleep(10_000)]);
      await time.sleep(exponential(MEAN_MS.notReady));
      return offFor(machine, offMs, 'crashed, and was not ready before');
    }
    if (machine.instance !== 'lives') return offFor(machine, offMs, 'crashed');
    if (what < 0.85) {
      const id = instanceIdOf(machine.spec);
      cloud.stop(id);
      switchOff(machine, 'its instance is stopped');
      await time.sleep(offMs);
      // It may have been terminated meanwhile.
      if ((machine.instance as TrueMachine['instance']) === 'lives') cloud.start(id);
      switchOn(machine);
      return;
    }
    endInstance(machine, what < 0.95 ? 'terminate' : 'vanish');
  }

  async function fate(machine: SimulatedMachine): Promise<void> {
    while (machine.instance !== 'ended') {
      await time.sleep(exponential(MEAN_MS.deed));
      await deed(machine);
    }
  }

  async function everyNow(meanMs: number, what: () => Promise<void> | void): Promise<void> {
    for (;;) {
      await time.sleep(1_000 + exponential(meanMs));
      await what();
    }
  }

  async function zonePower(): Promise<void> {
    const zone = `zone-${Math.floor(fraction() * options.zones)}`;
    const share = chance(0.5) ? 1 : between(0.3, 0.9);
    const victims = all.filter((machine) => machine.zone === zone && chance(share));
    const offMs = 60_000 + exponential(MEAN_MS.off);
    for (const victim of victims) void offFor(victim, offMs + between(0, 20_000), `power of ${zone} is lost`);
    await time.sleep(offMs);
  }

  async function blackout(): Promise<void> {
    const offMs = 90_000 + exponential(MEAN_MS.off);
    for (const victim of [...all]) void offFor(victim, offMs + between(0, 60_000), 'power is lost everywhere');
    await time.sleep(offMs);
  }

  function tolerations(): unknown[] {
    const what = fraction();
    if (what < 0.35) return [];
    if (what < 0.5) return [{ operator: 'Exists' }];
    const tolerationSeconds = Math.floor(between(0, 90));
    const keys = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready'];
    const kept = what < 0.6 ? keys.slice(0, 1) : keys;
    return kept.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));
  }

  async function bindPod(): Promise<void> {
    const node = oneOf([...view.nodes.keys()]);
    if (chance(0.06)) return bendPod();
    if (node === undefined || [...view.podsOf(node)].length >= PODS_A_NODE_MAX) return;
    pods += 1;
    await asOperator({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `pod-${pods}`, namespace: 'default' },
        spec: {
          ...(chance(0.95) ? { nodeName: node } : {}),
          tolerations: tolerations(),
          terminationGracePeriodSeconds: Math.floor(between(0, 30)),
          containers: [{ name: 'main', image: 'registry.example/main:1' }],
        },
      },
    });
  }

  /** A pod comes to its own end, or a person ends it. */
  async function bendPod(): Promise<void> {
    const pod = oneOf([...view.pods.values()]);
    if (pod === undefined) return;
    if (chance(0.5)) await asOperator({ method: 'DELETE', path: podPath(pod) });
    else {
      await asOperator({
        method: 'PATCH',
        path: `${podPath(pod)}/status`,
        body: { status: { phase: 'Succeeded' } },
        contentType: MERGE,
      });
    }
  }

  async function deleteNode(): Promise<void> {
    const machine = oneOf(all.filter(({ spec }) => view.nodes.has(spec.name)));
    if (machine === undefined) return;
    tell(machine.spec.name, 'a person deletes the Node');
    await asOperator({ method: 'DELETE', path: `/api/v1/nodes/${machine.spec.name}` });
  }

  /** A person declares a machine out of service that is long off, and takes that back when it is on. */
  async function outOfService(): Promise<void> {
    for (const { spec, isOn, sinceMs } of all) {
      const node = view.nodes.get(spec.name);
      const taints = node?.spec?.taints ?? [];
      const isDeclared = taints.some(({ key }) => key === OUT_OF_SERVICE.key);
      const isLongOff = !isOn && time.nowMs() - sinceMs > 90_000;
      if (node === undefined || isDeclared === isLongOff || (isLongOff && chance(0.6))) continue;
      tell(spec.name, `a person ${isDeclared ? 'lifts' : 'sets'} the out-of-service taint`);
      const next = isDeclared ? taints.filter(({ key }) => key !== OUT_OF_SERVICE.key) : [...taints, OUT_OF_SERVICE];
      await asOperator({
        method: 'PATCH',
        path: `/api/v1/nodes/${spec.name}`,
        body: { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints: next } },
        contentType: MERGE,
      });
      return;
    }
  }

  /** Some people do the same to one Node at the same time. */
  async function count(): Promise<void> {
    const name = oneOf([...view.nodes.keys()]);
    if (name === undefined) return;
    await Promise.all(Array.from({ length: 1 + Math.floor(fraction() * 3) }, () => countUp(name)));
  }

  /** Reads a Node, counts one up in it and writes it back. */
  async function countUp(name: string): Promise<void> {
    const path = `/api/v1/nodes/${name}`;
    const found = await asOperator({ method: 'GET', path });
    if (!isDone(found)) return;
    const node = found.body as KubeNode;
    writes += 1;
    const token = `w${writes}`;
    const counted = Number((node.metadata.annotations?.[COUNTER] ?? '0:').split(':')[0]) + 1;
    const annotations = { ...node.metadata.annotations, [COUNTER]: `${counted}:${token}` };
    const body: KubeObject = { ...node, metadata: { ...node.metadata, annotations } };
    const answer = await asOperator({ method: 'PUT', path, body });
    if (answer.status === 409) options.onConflict();
    if (!isDone(answer)) return;
    options.onAcknowledged({
      nodeName: name,
      uid: node.metadata.uid ?? '',
      resourceVersion: node.metadata.resourceVersion ?? '',
      token,
    });
  }

  return {
    machines,
    machine: (name) => machines.get(name),
    crash(name, offMs) {
      const machine = machines.get(name);
      if (machine?.isOn === true) void offFor(machine, offMs, 'crashed');
    },
    async begin() {
      for (let index = 0; index < options.nodes; index += 1) enlist(index);
      for (const machine of [...all]) {
        const { spec, zone } = machine;
        const endpoint = {
          failShare: 0,
          send: (request: EndpointRequest) => send(request, { zone, isGone: () => false }),
        };
        void createMachine(spec, endpoint, view, options.clockOf(spec.name))
          .register(time.nowMs())
          .then(() => switchOn(machine));
        void fate(machine);
      }
      for (let writer = 0; writer < 2; writer += 1) void everyNow(MEAN_MS.count, count);
      void everyNow(MEAN_MS.pods, bindPod);
      void everyNow(MEAN_MS.pods, bindPod);
      void everyNow(MEAN_MS.nodeDeletion, deleteNode);
      void everyNow(MEAN_MS.outOfService / 4, outOfService);
      void everyNow(MEAN_MS.zonePower, zonePower);
      void everyNow(MEAN_MS.blackout, blackout);
    },
  };
}
