/**
 * The policies that processes of a run may use: the deployed one, and older ones while their decisions may still take
 * effect.
 */
import type { Policy } from '../shared/fleet/policy.ts';

/** Decisions of an old policy have had their effect, or are decided again. Milliseconds. */
const ROLLED_AFTER_MS = 120_000;

export interface PolicyVersions {
  /** The policy as a planted bug changes it. The laws use the policy without that change. */
  asPlanted(policy: Policy): Policy;
  /**
   * `policies`: those of the processes that may still run. Returns these and the replaced ones, without planted
   * changes.
   */
  all(policies: readonly Policy[]): readonly Policy[];
  /** A roll-out that lasts until `untilMs` replaces this policy. */
  replace(policy: Policy, untilMs: number): void;
  /** The last process with an older policy has terminated. */
  finishRoll(): void;
  /** Decisions of older policies have no effect after this. Epoch milliseconds. */
  settledAtMs(): number;
}

export function policyVersions(options: {
  readonly nowMs: () => number;
  readonly plant: ((policy: Policy) => Policy) | undefined;
}): PolicyVersions {
  const { nowMs, plant } = options;
  const requested = new Map<Policy, Policy>();
  const requestedOf = (policy: Policy): Policy => requested.get(policy) ?? policy;
  const replaced: { readonly policy: Policy; readonly untilMs: number }[] = [];
  let settledAtMs = Number.NEGATIVE_INFINITY;
  return {
    asPlanted(policy) {
      const planted = plant?.(policy) ?? policy;
      requested.set(planted, policy);
      return planted;
    },
    all: (policies) => [
      ...policies.map(requestedOf),
      ...replaced.flatMap(({ policy, untilMs }) => (nowMs() < untilMs ? [policy] : [])),
    ],
    replace(policy, untilMs) {
      replaced.push({ policy: requestedOf(policy), untilMs: untilMs + ROLLED_AFTER_MS });
    },
    finishRoll() {
      settledAtMs = nowMs() + ROLLED_AFTER_MS;
    },
    settledAtMs: () => settledAtMs,
  };
}
