/** The machines of a scenario: how they come to be, and when each acts next. */

import { podStatusReport } from '../agent/rules/pod-requests.ts';
import { startedStatus } from '../agent/rules/started-pod.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { parseTimeMs } from '../shared/kubernetes/time.ts';
import { OPERATOR } from './access.ts';
import { type ClusterView, nodeNameOf, type ViewChanges } from './cluster-view.ts';
import { type Endpoint, type EndpointAnswer, messageOf } from './endpoint.ts';
import { createMachine, type Machine } from './machine.ts';
import type { MachineSpec } from './scenario.ts';
import { sideBySide } from './side-by-side.ts';

/** Machines that ask at once within one instant: the engine answers in its own process meanwhile. */
const AT_ONCE_MAX = 16;

export class SetupFault extends Error {
  override readonly name = 'SetupFault';
}

export interface Fleet {
  readonly machines: ReadonlyMap<string, Machine>;
  /** Registers the machines that are there from the start, with their pods. Ends at 0 s. */
  setUp(): Promise<void>;
  /** When the next machine beats or confirms the end of a pod. Epoch milliseconds. */
  nextAtMs(): number;
  /** What machines do at this instant by themselves. */
  act(nowMs: number): Promise<void>;
  /** A machine that joins later. */
  join(spec: MachineSpec): Machine;
  /** It beats and posts now, then at its slots. */
  start(machine: Machine, nowMs: number): Promise<EndpointAnswer>;
  /** Pods that are being deleted: their machines confirm when their time is over. */
  watch(changes: ViewChanges, nowMs: number): void;
}

interface ScenarioFleetOptions {
  readonly specs: readonly MachineSpec[];
  readonly startMs: number;
  readonly endpoint: Endpoint;
  readonly view: ClusterView;
  readonly setTime: (nowMs: number) => void;
  /** A machine with an EC2 instance comes to be, now but for its age. */
  readonly launch: (spec: MachineSpec) => void;
}

export function createFleet(options: ScenarioFleetOptions): Fleet {
  return new ScenarioFleet(options);
}

class ScenarioFleet implements Fleet {
  readonly #options: ScenarioFleetOptions;
  readonly machines = new Map<string, Machine>();
  /** Machines by the time of their next slot, silent ones too: a slot is kept through a silence. */
  readonly #slots = new Map<number, Machine[]>();
  /** Names of machines by the time at which a pod of theirs has ended. */
  readonly #endings = new Map<number, Set<string>>();
  readonly #scheduled = new Set<Machine>();

  constructor(options: ScenarioFleetOptions) {
    this.#options = options;
  }

  async setUp(): Promise<void> {
    const all = this.#options.specs.map((spec) => this.#add(spec));
    for (const ageMs of [...new Set(this.#options.specs.map((spec) => spec.ageMs))].sort((one, other) => other - one)) {
      const nowMs = this.#options.startMs - ageMs;
      this.#options.setTime(nowMs);
      const ofAge = all.filter(({ spec }) => spec.ageMs === ageMs);
      await sideBySide(ofAge, AT_ONCE_MAX, async (machine) => {
        this.#must(await machine.register(nowMs), `node ${machine.spec.name}`);
      });
    }
    this.#options.setTime(this.#options.startMs);
    this.#options.view.refresh();
    await sideBySide(all, AT_ONCE_MAX, async (machine) => {
      const { name, podCount, ageMs } = machine.spec;
      if (ageMs > 0) this.#must(await machine.post(this.#options.startMs, {}), `status of ${name}`);
      for (let index = 0; index < podCount; index += 1) await this.#createPod(name, index, this.#options.startMs);
    });
    this.#options.view.refresh();
    for (const machine of all) this.#atSlot(machine, this.#options.startMs + machine.spec.phaseMs);
  }

  nextAtMs(): number {
    return Math.min(...this.#slots.keys(), ...this.#endings.keys());
  }

  async act(nowMs: number): Promise<void> {
    const due = this.#slots.get(nowMs) ?? [];
    this.#slots.delete(nowMs);
    for (const machine of due) this.#atSlot(machine, nowMs + machine.spec.beatEveryMs);
    const beating = due.filter((machine) => machine.beating);
    await sideBySide(beating, AT_ONCE_MAX, async (machine) => {
      await machine.act(nowMs);
    });
    const ended = [...(this.#endings.get(nowMs) ?? [])];
    this.#endings.delete(nowMs);
    await sideBySide(ended, AT_ONCE_MAX, async (name) => {
      const machine = this.machines.get(name);
      if (machine?.beating === true && !beating.includes(machine)) await machine.confirmPods(nowMs);
    });
  }

  join(spec: MachineSpec) {
    return this.#add(spec);
  }

  async start(machine: Machine, nowMs: number): Promise<EndpointAnswer> {
    machine.start();
    if (!this.#scheduled.has(machine)) this.#atSlot(machine, nowMs + machine.spec.beatEveryMs);
    return machine.act(nowMs, { urgent: true });
  }

  watch({ pods }: ViewChanges, nowMs: number): void {
    for (const { after } of pods) {
      const endsAtMs = parseTimeMs(after?.metadata.deletionTimestamp);
      if (after === undefined || endsAtMs === undefined || endsAtMs <= nowMs) continue;
      const nodeName = nodeNameOf(after);
      if (nodeName === '') continue;
      const names = this.#endings.get(endsAtMs) ?? new Set();
      this.#endings.set(endsAtMs, names.add(nodeName));
    }
  }

  #add(spec: MachineSpec): Machine {
    const machine = createMachine(spec, this.#options.endpoint, this.#options.view);
    this.machines.set(spec.name, machine);
    if (spec.hasInstance) this.#options.launch(spec);
    return machine;
  }

  #atSlot(machine: Machine, atMs: number): void {
    this.#scheduled.add(machine);
    const others = this.#slots.get(atMs);
    if (others === undefined) this.#slots.set(atMs, [machine]);
    else others.push(machine);
  }

  #must(answer: EndpointAnswer, what: string): EndpointAnswer {
    if (answer.status === 200 || answer.status === 201) return answer;
    throw new SetupFault(`${what}: ${messageOf(answer)}`);
  }

  async #createPod(nodeName: string, index: number, nowMs: number): Promise<void> {
    const pod: KubeObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${nodeName}-pod-${index}`, namespace: 'default' },
      spec: { nodeName, containers: [{ name: 'main', image: 'registry.example/main:1' }] },
    };
    const path = '/api/v1/namespaces/default/pods';
    const created = this.#must(
      await this.#options.endpoint.send({ who: OPERATOR, method: 'POST', path, body: pod }),
      `pod of ${nodeName}`,
    );
    const stored = created.body as KubeObject;
    const report = podStatusReport(stored, startedStatus(stored, nowMs, undefined));
    const running = await this.#options.endpoint.send({ who: nodeName, ...report });
    this.#must(running, `status of ${stored.metadata.name}`);
  }
}
