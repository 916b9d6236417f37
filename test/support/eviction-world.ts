/** A node with pods on virtual time: applies what decidePodEvictions decides, as the evictor does. */

import {
  decidePodEvictions,
  type EvictablePod,
  type EvictionTimer,
  type PodEvictionDecision,
} from '../../shared/fleet/eviction.rule.ts';
import type { NodeSigns } from '../../shared/fleet/eviction-time.rule.ts';
import type { GateVerdict } from '../../shared/fleet/gate.ts';
import type { NoExecuteTaint } from '../../shared/fleet/nodes/taint.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';

export const aTaint = (key: string, addedAtSeconds = 0, value = ''): NoExecuteTaint => ({
  key,
  value,
  addedAtMs: addedAtSeconds * 1_000,
});

export const aPod = (
  name: string,
  tolerations: readonly Toleration[],
  over: Partial<EvictablePod> = {},
): EvictablePod => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  nodeName: 'node1',
  boundAtMs: 0,
  tolerations,
  terminating: false,
  ...over,
});

export const tolerating = (key: string, seconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});

export class EvictionWorld {
  nowMs = 0;
  taints: NoExecuteTaint[] | undefined = [];
  pods: EvictablePod[] = [];
  gate: GateVerdict = { kind: 'open' };
  freshSinceMs = 0;
  signs: NodeSigns | undefined;
  readonly timers = new Map<string, EvictionTimer>();
  /** Pod name to the time of its deletion, in ms. */
  readonly deletedAtMs = new Map<string, number>();
  readonly events: string[] = [];
  readonly log: PodEvictionDecision[] = [];

  decide(): PodEvictionDecision[] {
    const { taints, pods, gate, freshSinceMs, signs } = this;
    const world = { nodeName: 'node1', taints, pods, timers: [...this.timers.values()], gate, freshSinceMs, signs };
    return decidePodEvictions(world, this.nowMs, defaultPolicy);
  }

  /** One trigger: decide and apply. */
  handle(): PodEvictionDecision[] {
    const decisions = this.decide();
    for (const decision of decisions) this.#apply(decision);
    this.log.push(...decisions);
    return decisions;
  }

  /** Ticks every `stepMs` up to and including this second. */
  runTo(seconds: number, stepMs = 1_000): void {
    while (this.nowMs < seconds * 1_000) {
      this.nowMs = Math.min(this.nowMs + stepMs, seconds * 1_000);
      this.handle();
    }
  }

  /** At this second: change something, then one trigger. */
  at(seconds: number, change: (world: this) => void, stepMs = 1_000): PodEvictionDecision[] {
    if (seconds * 1_000 > this.nowMs) {
      this.runTo(seconds - stepMs / 1_000, stepMs);
      this.nowMs = seconds * 1_000;
    }
    change(this);
    return this.handle();
  }

  replacePod(name: string, over: Partial<EvictablePod>): void {
    this.pods = this.pods.map((pod) => (pod.name === name ? { ...pod, ...over } : pod));
  }

  dueInSeconds(name: string): number | null {
    const timer = [...this.timers.values()].find((candidate) => candidate.name === name);
    return timer === undefined ? null : (timer.atMs - this.nowMs) / 1_000;
  }

  #apply(decision: PodEvictionDecision): void {
    const { namespace, name, podUid } = decision;
    switch (decision.kind) {
      case 'schedule':
      case 'move':
        this.timers.set(podUid, { namespace, name, podUid, atMs: decision.atMs });
        break;
      case 'hold':
        if (!decision.timerExists) this.timers.set(podUid, { namespace, name, podUid, atMs: decision.atMs });
        break;
      case 'leave':
        break;
      case 'cancel':
        this.events.push(decision.event.message);
        this.timers.delete(podUid);
        break;
      case 'drop':
        this.timers.delete(podUid);
        break;
      case 'delete':
      case 'remove':
        this.events.push(decision.event.message);
        this.timers.delete(podUid);
        this.deletedAtMs.set(name, this.nowMs);
        this.pods = this.pods.filter((pod) => pod.uid !== podUid);
        break;
      default:
        decision satisfies never;
    }
  }
}
