/**
 * The policy of a long run. In a mixed fleet another one is deployed from time to time. While it is rolled out, some
 * processes of node-monitor have the old one. Function heartbeat and the API get the new one at a moment of their own.
 */

import { DEPLOYED_WITHIN_MS } from '../../shared/fleet/gate.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { Functions } from '../faults/processes.ts';
import type { VirtualTime } from '../virtual-time.ts';

/**
 * After a roll-out both policies may still decide: the profiles of all Nodes are evaluated again within ten minutes,
 * and live machines learn their interval meanwhile.
 */
export const SETTLED_AFTER_MS = 600_000;
const APART_MIN_MS = 2_400_000;
const APART_MEAN_MS = 600_000;
const ROLL_MIN_MS = 10_000;

export class DeployedPolicies {
  readonly #time: VirtualTime;
  readonly #first: Policy;
  #current: Policy;
  #before: { readonly policy: Policy; readonly untilMs: number }[] = [];
  /** The policy of function heartbeat. */
  heartbeat: Policy;
  /** The policy of the API. */
  api: Policy;
  #settledAtMs = Number.NEGATIVE_INFINITY;

  constructor(time: VirtualTime, first: Policy) {
    this.#time = time;
    this.#first = first;
    this.#current = first;
    this.heartbeat = first;
    this.api = first;
  }

  get current(): Policy {
    return this.#current;
  }

  get isFirst(): boolean {
    return this.#current === this.#first;
  }

  /** When the last roll-out has had its effects. */
  get settledAtMs(): number {
    return this.#settledAtMs;
  }

  /** `endMs`: when the last process with the old policy ends. */
  deploy(next: Policy, endMs: number): void {
    this.#settledAtMs = endMs + SETTLED_AFTER_MS;
    this.#before = this.#before.filter(({ untilMs }) => untilMs > this.#time.nowMs());
    this.#before.push({ policy: this.#current, untilMs: this.#settledAtMs });
    this.#current = next;
  }

  /** Those that processes may decide by now. */
  inUse(): readonly Policy[] {
    const nowMs = this.#time.nowMs();
    return [this.#current, ...this.#before.flatMap(({ policy, untilMs }) => (nowMs < untilMs ? [policy] : []))];
  }
}

/** Deploys the policies in random order, each for 40 minutes and more. */
export function rollPolicies(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly policies: readonly Policy[];
  readonly deployed: DeployedPolicies;
  readonly functions: Functions;
  /** The policy as a planted bug changes it. */
  readonly asPlanted: (policy: Policy) => Policy;
  readonly beforeRoll: () => void;
  /** The answers to heartbeats may ask for other times from now on. */
  readonly onTimesChanged: () => void;
}): void {
  const { time, fraction, policies, deployed, functions } = options;
  if (policies.length < 2) return;

  function roll(): void {
    const others = policies.filter((policy) => policy !== deployed.current);
    const next = others[Math.floor(fraction() * others.length)]!;
    const lastsMs = ROLL_MIN_MS + fraction() * (DEPLOYED_WITHIN_MS - ROLL_MIN_MS);
    options.beforeRoll();
    deployed.deploy(next, time.nowMs() + lastsMs);
    functions.policy = options.asPlanted(next);
    time.after(fraction() * lastsMs, () => {
      deployed.heartbeat = next;
      options.onTimesChanged();
    });
    time.after(fraction() * lastsMs, () => {
      deployed.api = next;
    });
    time.after(lastsMs, () => functions.restart());
    plan();
  }

  function plan(): void {
    time.after(APART_MIN_MS - Math.log(1 - fraction()) * APART_MEAN_MS, roll);
  }
  plan();
}
