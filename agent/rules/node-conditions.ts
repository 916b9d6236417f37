/** The conditions that the agent sets on its Node (pkg/kubelet/nodestatus/setters.go). */

import type { NodeCondition } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { NodeEvent } from './node-event.ts';

export type PressureType = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';

export const PRESSURE_TYPES: readonly PressureType[] = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

interface Wording {
  readonly reason: string;
  readonly message: string;
  readonly event: string;
}

const PRESSURE_WORDINGS: Readonly<Record<PressureType, { readonly under: Wording; readonly clear: Wording }>> = {
  MemoryPressure: {
    under: {
      reason: 'KubeletHasInsufficientMemory',
      message: 'kubelet has insufficient memory available',
      event: 'NodeHasInsufficientMemory',
    },
    clear: {
      reason: 'KubeletHasSufficientMemory',
      message: 'kubelet has sufficient memory available',
      event: 'NodeHasSufficientMemory',
    },
  },
  DiskPressure: {
    under: { reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure', event: 'NodeHasDiskPressure' },
    clear: {
      reason: 'KubeletHasNoDiskPressure',
      message: 'kubelet has no disk pressure',
      event: 'NodeHasNoDiskPressure',
    },
  },
  PIDPressure: {
    under: {
      reason: 'KubeletHasInsufficientPID',
      message: 'kubelet has insufficient PID available',
      event: 'NodeHasInsufficientPID',
    },
    clear: {
      reason: 'KubeletHasSufficientPID',
      message: 'kubelet has sufficient PID available',
      event: 'NodeHasSufficientPID',
    },
  },
};

export interface ConditionOutcome {
  readonly condition: NodeCondition;
  /** Absent without a transition. */
  readonly event?: NodeEvent;
}

/** An event about a change of the node's status. */
export const statusEvent = (nodeName: string, reason: string): NodeEvent => ({
  type: 'Normal',
  reason,
  message: `Node ${nodeName} status is now: ${reason}`,
});

/**
 * A pressure condition. Each change of the status is a transition, also from no status: the first value raises an
 * event, and a condition that the controller marked Unknown is overwritten. Without a transition only the heartbeat
 * time changes: reason and message stay, whoever wrote them.
 */
export function pressureCondition(
  type: PressureType,
  existing: NodeCondition | undefined,
  input: { readonly underPressure: boolean; readonly nodeName: string; readonly nowMs: number },
): ConditionOutcome {
  const now = formatTime(input.nowMs);
  const status = input.underPressure ? 'True' : 'False';
  if (existing?.status === status) return { condition: { ...existing, lastHeartbeatTime: now } };
  const { reason, message, event } = PRESSURE_WORDINGS[type][input.underPressure ? 'under' : 'clear'];
  return {
    condition: { ...existing, type, status, reason, message, lastHeartbeatTime: now, lastTransitionTime: now },
    event: statusEvent(input.nodeName, event),
  };
}

/** The errors that make a node not ready, with the text of their source. */
export interface ReadyErrors {
  readonly runtime?: string | undefined;
  readonly network?: string | undefined;
  readonly storage?: string | undefined;
  /** `node is shutting down` */
  readonly shutdown?: string | undefined;
}

export interface ReadyInput {
  readonly errors: ReadyErrors;
  /** A problem that does not make the node unready. */
  readonly warning?: string | undefined;
  readonly capacity: Readonly<Record<string, string>> | undefined;
  readonly localStorageCapacityIsolation: boolean;
  readonly nodeName: string;
  readonly nowMs: number;
}

const missingCapacity = (input: ReadyInput): string | undefined => {
  const required = ['cpu', 'memory', 'pods', ...(input.localStorageCapacityIsolation ? ['ephemeral-storage'] : [])];
  const missing = required.filter((name) => input.capacity?.[name] === undefined);
  return missing.length === 0 ? undefined : `missing node capacity for resources: ${missing.join(', ')}`;
};

/** Texts in the format of Go's aggregate errors: without duplicates, and in brackets if there are several. */
function aggregated(texts: readonly string[]): string {
  const distinct = [...new Set(texts)];
  return distinct.length === 1 ? (distinct[0] ?? '') : `[${distinct.join(', ')}]`;
}

/** The Ready condition. Its transition time changes only with the status. The first value raises no event. */
export function readyCondition(existing: NodeCondition | undefined, input: ReadyInput): ConditionOutcome {
  const { runtime, network, storage, shutdown } = input.errors;
  const errors = [runtime, network, storage, shutdown, missingCapacity(input)].filter(
    (text): text is string => text !== undefined && text !== '',
  );
  const now = formatTime(input.nowMs);
  const ready = errors.length === 0;
  const status = ready ? 'True' : 'False';
  const words = ready ? 'kubelet is posting ready status' : aggregated(errors);
  const unchanged = existing?.status === status;
  const condition: NodeCondition = {
    type: 'Ready',
    status,
    reason: ready ? 'KubeletReady' : 'KubeletNotReady',
    message: input.warning === undefined || input.warning === '' ? words : `${words}. WARNING: ${input.warning}`,
    lastHeartbeatTime: now,
    lastTransitionTime: unchanged ? (existing.lastTransitionTime ?? null) : now,
  };
  if (existing === undefined || unchanged) return { condition };
  return { condition, event: statusEvent(input.nodeName, ready ? 'NodeReady' : 'NodeNotReady') };
}

/** The list with the condition in place of the one with its type, or at the end. */
export function withCondition(
  conditions: readonly NodeCondition[] | undefined,
  condition: NodeCondition,
): NodeCondition[] {
  const list = conditions ?? [];
  const known = list.some(({ type }) => type === condition.type);
  return known ? list.map((each) => (each.type === condition.type ? condition : each)) : [...list, condition];
}

export const conditionOf = (
  conditions: readonly NodeCondition[] | undefined,
  type: string,
): NodeCondition | undefined => conditions?.find((condition) => condition.type === type);
