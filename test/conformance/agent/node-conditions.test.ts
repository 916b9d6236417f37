/** SR: the Ready condition. SP: pressure conditions. */
import { describe, expect, it } from 'vitest';
import {
  type PressureType,
  pressureCondition,
  type ReadyErrors,
  readyCondition,
} from '../../../agent/rules/node-conditions.ts';
import type { ConditionStatus, NodeCondition } from '../../../shared/kinds/types.ts';

const NOW_MS = Date.UTC(2024, 4, 1, 10);
const T = '2024-05-01T10:00:00Z';
const EARLIER = '2024-05-01T09:59:59Z';

const earlier = (type: string, status: ConditionStatus): NodeCondition => ({
  type,
  status,
  reason: 'as before',
  message: 'as it was before',
  lastHeartbeatTime: EARLIER,
  lastTransitionTime: EARLIER,
});

const FULL = { cpu: '2', memory: '1Ki', pods: '110', 'ephemeral-storage': '5000' };
const READY = 'kubelet is posting ready status';

interface ReadyCase {
  readonly id: string;
  readonly before?: ConditionStatus;
  readonly errors?: ReadyErrors;
  readonly capacity?: Record<string, string>;
  readonly localStorage?: boolean;
  readonly status: ConditionStatus;
  readonly message: string;
  readonly transition: string;
  readonly event?: string;
}

const { pods: _pods, 'ephemeral-storage': _storage, ...withoutPods } = FULL;
const readyCases: readonly ReadyCase[] = [
  { id: 'SR-01 a first Ready without errors', status: 'True', message: READY, transition: T },
  {
    id: 'SR-03 a storage error at first',
    errors: { storage: 'some storage error' },
    status: 'False',
    message: 'some storage error',
    transition: T,
  },
  {
    id: 'SR-05 runtime before network, in brackets',
    errors: { network: 'network', runtime: 'runtime' },
    status: 'False',
    message: '[runtime, network]',
    transition: T,
  },
  { id: 'SR-07 ready again', before: 'False', status: 'True', message: READY, transition: T, event: 'NodeReady' },
  { id: 'SR-09 ready as before', before: 'True', status: 'True', message: READY, transition: EARLIER },
  {
    id: 'SR-11 equal texts once, without brackets',
    before: 'True',
    errors: { runtime: 'x', storage: 'x' },
    status: 'False',
    message: 'x',
    transition: T,
    event: 'NodeNotReady',
  },
  {
    id: 'SR-13 pods missing from the capacity, local storage isolation off',
    before: 'True',
    capacity: withoutPods,
    localStorage: false,
    status: 'False',
    message: 'missing node capacity for resources: pods',
    transition: T,
    event: 'NodeNotReady',
  },
];

describe('SR the Ready condition', () => {
  for (const each of readyCases) {
    it(each.id, () => {
      const before = each.before === undefined ? undefined : earlier('Ready', each.before);
      const outcome = readyCondition(before, {
        errors: each.errors ?? {},
        capacity: each.capacity ?? FULL,
        localStorageCapacityIsolation: each.localStorage ?? true,
        nodeName: 'n',
        nowMs: NOW_MS,
      });
      expect(outcome.condition).toEqual({
        type: 'Ready',
        status: each.status,
        reason: each.status === 'True' ? 'KubeletReady' : 'KubeletNotReady',
        message: each.message,
        lastHeartbeatTime: T,
        lastTransitionTime: each.transition,
      });
      expect(outcome.event).toEqual(
        each.event === undefined
          ? undefined
          : { type: 'Normal', reason: each.event, message: `Node n status is now: ${each.event}` },
      );
    });
  }
});

type Words = readonly [reason: string, message: string, event: string];
const ENOUGH_MEMORY: Words = [
  'KubeletHasSufficientMemory',
  'kubelet has sufficient memory available',
  'NodeHasSufficientMemory',
];
const LITTLE_MEMORY: Words = [
  'KubeletHasInsufficientMemory',
  'kubelet has insufficient memory available',
  'NodeHasInsufficientMemory',
];
const FULL_DISK: Words = ['KubeletHasDiskPressure', 'kubelet has disk pressure', 'NodeHasDiskPressure'];
const FREE_DISK: Words = ['KubeletHasNoDiskPressure', 'kubelet has no disk pressure', 'NodeHasNoDiskPressure'];
const ENOUGH_PIDS: Words = ['KubeletHasSufficientPID', 'kubelet has sufficient PID available', 'NodeHasSufficientPID'];
const FEW_PIDS: Words = [
  'KubeletHasInsufficientPID',
  'kubelet has insufficient PID available',
  'NodeHasInsufficientPID',
];

/** Without words the condition stays as it was, but for its heartbeat. */
const pressureCases: readonly (readonly [string, PressureType, ConditionStatus | undefined, boolean, Words?])[] = [
  ['SP-01', 'MemoryPressure', undefined, false, ENOUGH_MEMORY],
  ['SP-03', 'MemoryPressure', 'False', true, LITTLE_MEMORY],
  ['SP-05', 'MemoryPressure', 'True', true],
  ['SP-07', 'DiskPressure', undefined, true, FULL_DISK],
  ['SP-09', 'DiskPressure', 'True', false, FREE_DISK],
  ['SP-11', 'DiskPressure', 'False', false],
  ['SP-13', 'PIDPressure', undefined, false, ENOUGH_PIDS],
  ['SP-15', 'PIDPressure', 'False', true, FEW_PIDS],
  ['SP-17', 'PIDPressure', 'True', true],
];

describe('SP pressure conditions', () => {
  for (const [id, type, status, underPressure, words] of pressureCases) {
    it(`${id} ${type} ${status ?? 'none'}, then ${underPressure ? 'pressure' : 'no pressure'}`, () => {
      const before = status === undefined ? undefined : earlier(type, status);
      const { condition, event } = pressureCondition(type, before, { underPressure, nodeName: 'n', nowMs: NOW_MS });
      if (words === undefined) {
        expect(condition).toEqual({ ...before, lastHeartbeatTime: T });
        expect(event).toBeUndefined();
        return;
      }
      const [reason, message, eventReason] = words;
      expect(condition).toEqual({
        type,
        status: underPressure ? 'True' : 'False',
        reason,
        message,
        lastHeartbeatTime: T,
        lastTransitionTime: T,
      });
      expect(event).toEqual({
        type: 'Normal',
        reason: eventReason,
        message: `Node n status is now: ${eventReason}`,
      });
    });
  }
});
