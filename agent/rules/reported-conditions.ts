/** The conditions that a node reports about itself, in the order in which a kubelet sets them. */
import type { NodeCondition } from '../../shared/kinds/types.ts';
import {
  conditionOf,
  PRESSURE_TYPES,
  type PressureType,
  pressureCondition,
  type ReadyInput,
  readyCondition,
  withCondition,
} from './node-conditions.ts';
import type { NodeEvent } from './node-event.ts';

export interface ReportedConditions {
  readonly conditions: NodeCondition[];
  readonly events: readonly NodeEvent[];
}

/** The list with all pressure conditions; conditions of other types stay as found. */
export function withPressures(
  found: readonly NodeCondition[] | undefined,
  input: {
    readonly isUnderPressure: (type: PressureType) => boolean;
    readonly nodeName: string;
    readonly nowMs: number;
  },
): ReportedConditions {
  const { isUnderPressure, nodeName, nowMs } = input;
  let conditions = [...(found ?? [])];
  const events: NodeEvent[] = [];
  for (const type of PRESSURE_TYPES) {
    const underPressure = isUnderPressure(type);
    const outcome = pressureCondition(type, conditionOf(conditions, type), { underPressure, nodeName, nowMs });
    conditions = withCondition(conditions, outcome.condition);
    if (outcome.event !== undefined) events.push(outcome.event);
  }
  return { conditions, events };
}

/** The list with Ready; conditions of other types stay as found. */
export function withReady(found: readonly NodeCondition[] | undefined, input: ReadyInput): ReportedConditions {
  const { condition, event } = readyCondition(conditionOf(found, 'Ready'), input);
  return { conditions: withCondition(found, condition), events: event === undefined ? [] : [event] };
}
