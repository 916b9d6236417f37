/**
 * The default event bus: events go to the functions of every rule that matches them, as an asynchronous invocation
 * without retries. Best effort, as the events of EC2 are.
 */
import type { EventRulePlan } from '../assembly/plan.ts';
import { compileFilters } from '../streams/filter.ts';

export interface EventBus {
  readonly counters: { matched: number; unmatched: number };
  put(event: Readonly<Record<string, unknown>>): void;
}

/** @throws StartError on a pattern that is not understood here */
export function openEventBus(
  rules: readonly EventRulePlan[],
  invoke: (functionId: string, event: unknown) => void,
): EventBus {
  const compiled = rules.map((rule) => ({ rule, matches: compileFilters([rule.pattern], rule.logicalId) }));
  const counters = { matched: 0, unmatched: 0 };
  return {
    counters,
    put(event) {
      const matching = compiled.filter(({ matches }) => matches(event));
      if (matching.length === 0) counters.unmatched += 1;
      else counters.matched += 1;
      for (const { rule } of matching) for (const functionId of rule.functionIds) invoke(functionId, event);
    },
  };
}
