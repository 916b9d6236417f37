/** EC2 as cloud-node meets it: late, throttling, and now and then overlooking an instance for less than a period. */

import type { MemoryCloud } from '../../demo/ec2/cloud.ts';
import type { FunctionName } from '../../functions/function-list.ts';
import type { Cloud, InstanceAnswer } from '../../shared/fleet/instances/cloud.ts';
import { never, type VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions, Process } from './processes.ts';

export const EC2_STALE_MAX_MS = 20_000;
const ANSWER_MIN_MS = 20;
const ANSWER_MAX_MS = 150;
/** EC2 overlooks an instance no more often than that, and for less than a period: a second answer is correct. */
const OVERLOOK_PAUSE_MS = 60_000;
const TROUBLES = ['Throttling', 'RequestLimitExceeded', 'InternalError', 'timeout'] as const;

/** Delay of EventBridge at most. Milliseconds. */
const STATE_CHANGES_EVERY_MS = 1_000;
const STATE_CHANGE_LATE_MAX_MS = 60_000;

/** What EventBridge makes of changes of instances: a call for each, or none, or more. */
export function faultyInstanceEvents(options: {
  readonly cloud: MemoryCloud;
  readonly functions: Functions;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly onFault: (name: FunctionName, faults: readonly unknown[]) => void;
}): void {
  const { cloud, functions, time, plan, onFault } = options;

  async function deliver(instanceId: string): Promise<void> {
    const outcome = await functions.invoke('cloud-node', '', ({ controllers }) =>
      controllers.onInstanceChange(instanceId),
    );
    if (outcome.kind === 'failed') onFault('cloud-node', [outcome.error]);
  }

  function sendStateChanges(): void {
    for (const { instanceId } of cloud.takeStateChanges()) {
      if (!plan.strikes('ec2Events', 1)) {
        void deliver(instanceId);
        continue;
      }
      const copies = Math.floor(plan.fraction('ec2Events') * 3);
      for (let copy = 0; copy < copies; copy += 1) {
        time.after(plan.fraction('ec2Events') * STATE_CHANGE_LATE_MAX_MS, () => void deliver(instanceId));
      }
    }
    time.after(STATE_CHANGES_EVERY_MS, sendStateChanges);
  }
  time.after(STATE_CHANGES_EVERY_MS, sendStateChanges);
}

export interface Overlooking {
  fromMs: number;
}

export function faultyCloud(
  process: Process,
  options: {
    readonly cloud: MemoryCloud;
    readonly time: VirtualTime;
    readonly plan: FaultPlan;
    readonly fraction: () => number;
    readonly periodMs: number;
    /** Shared by all processes: it is EC2 that overlooks, not who asks. */
    readonly overlooking: Overlooking;
  },
): Cloud {
  const { cloud, time, plan, fraction, periodMs, overlooking } = options;

  function ask<T>(question: () => Promise<T>): Promise<T> {
    if (process.isDead() || process.beforeCall() === 'before') return never();
    return new Promise((resolve, reject) => {
      time.after(ANSWER_MIN_MS + fraction() * (ANSWER_MAX_MS - ANSWER_MIN_MS), () => {
        const isTroubled = plan.strikes('ec2Throttled', 0.9);
        cloud.fail(isTroubled ? TROUBLES[Math.floor(plan.fraction('ec2Throttled') * TROUBLES.length)]! : null);
        const isStale = plan.strikes('ec2Stale', 1);
        cloud.setAnswerDelay(isStale ? plan.fraction('ec2Stale') * EC2_STALE_MAX_MS : 0);
        const answer = question();
        cloud.fail(null);
        answer.catch(() => undefined);
        if (!process.isDead()) answer.then(resolve, reject);
      });
    });
  }

  return {
    describeInstances: (instances) =>
      ask(async () => {
        const answers = await cloud.describeInstances(instances);
        const nowMs = time.nowMs();
        const mayOverlook = nowMs - overlooking.fromMs >= OVERLOOK_PAUSE_MS;
        if (mayOverlook && plan.strikes('ec2Wrong', 0.7)) overlooking.fromMs = nowMs;
        if (nowMs - overlooking.fromMs >= periodMs / 2) return answers;
        return new Map(
          [...answers].map(([id, answer]): [string, InstanceAnswer] =>
            answer.answer.kind === 'found' ? [id, { answer: { kind: 'notFound' } }] : [id, answer],
          ),
        );
      }),
    describeVolumes: (volumeIds) => ask(() => cloud.describeVolumes(volumeIds)),
    detachVolume: (request) => ask(() => cloud.detachVolume(request)),
  };
}
