/**
 * The cloud in memory: the Cloud port over a CloudWorld. It has controls for changes of instances and for failures of
 * calls. The contract suite test/contract/cloud.ts runs on it and on the EC2 adapter.
 *
 * With `answerDelayMs` an answer shows the state of that long ago, because EC2 is eventually consistent. An instance
 * that is younger than the delay is not known yet. Orders change the current state.
 */

import type { Clock } from '../../shared/clock.ts';
import type { Cloud, DetachOutcome, VolumeAnswer } from '../../shared/fleet/instances/cloud.ts';
import { CLUSTER_TAG } from '../../shared/fleet/instances/cluster-tag.ts';
import { cloudCalls } from './cloud-calls.ts';
import { instanceDescriber } from './cloud-instances.ts';
import {
  type CloudAttachment,
  type CloudInstance,
  type CloudVolume,
  CloudWorld,
  type CloudWorldOptions,
  type DetachOrder,
  type InstanceOrder,
  type InstanceStateChange,
  type SeenVolume,
} from './cloud-world.ts';
import { type CloudCalls, type CloudTrouble, type FailurePlan, plannedFailures } from './planned-failures.ts';

export interface MemoryCloudOptions extends Omit<CloudWorldOptions, 'clock' | 'accountId'> {
  readonly clock: Clock;
  readonly region: string;
  readonly accountId: string;
  /** Volumes of the cluster have this value in their tag `nodekeeper.dev/cluster`. */
  readonly clusterId?: string;
  readonly answerDelayMs?: number;
  /** An existing world. Absent: an empty one. */
  readonly world?: CloudWorld;
}

export interface MemoryCloud extends Cloud {
  readonly world: CloudWorld;
  /** Adds an instance, `running` by default. It replaces an instance with the same id. */
  put(instance: CloudInstance): void;
  terminate(instanceId: string): InstanceOrder;
  stop(instanceId: string): InstanceOrder;
  /** Also reverses `vanish`. */
  start(instanceId: string): InstanceOrder;
  /** From now on the id is unknown. There is no termination and no state change. */
  vanish(instanceId: string): InstanceOrder;
  putVolume(volume: CloudVolume): void;
  attachVolume(volumeId: string, attachment: Pick<CloudAttachment, 'instanceId'> & Partial<CloudAttachment>): boolean;
  deleteVolume(volumeId: string): void;
  /** Makes calls fail; null ends the failures. */
  fail(trouble: CloudTrouble | null, plan?: FailurePlan): void;
  setAnswerDelay(answerDelayMs: number): void;
  /** State changes since the previous call, oldest first. */
  takeStateChanges(): InstanceStateChange[];
  calls(): CloudCalls;
}

export function memoryCloud(options: MemoryCloudOptions): MemoryCloud {
  const { region, accountId, clusterId = 'nodekeeper' } = options;
  const { world = new CloudWorld(options) } = options;
  const failures = plannedFailures();
  let answerDelayMs = options.answerDelayMs ?? 0;
  const callEach = cloudCalls(world, failures, () => answerDelayMs);
  return {
    world,

    describeInstances: instanceDescriber({ world, region, accountId }, callEach, failures),

    describeVolumes: async (volumeIds) =>
      callEach('describeVolumes', [...new Set(volumeIds)], (id, momentMs) =>
        volumeAnswer(world.volume(id, momentMs), clusterId),
      ),

    async detachVolume({ volumeId, instanceId, force }) {
      return failures.call('detachVolume') ?? detachOutcome(world.detachVolume(volumeId, instanceId, force), volumeId);
    },

    put: (instance) => world.put(instance),
    terminate: (id) => world.terminate(id),
    stop: (id) => world.stop(id),
    start: (id) => world.start(id),
    vanish: (id) => world.vanish(id),
    putVolume: (volume) => world.putVolume(volume),
    attachVolume: (id, attachment) => world.attachVolume(id, attachment),
    deleteVolume: (id) => world.deleteVolume(id),
    fail: (trouble, plan) => failures.plan(trouble, plan),
    setAnswerDelay(delayMs) {
      answerDelayMs = delayMs;
    },
    takeStateChanges: () => world.takeStateChanges(),
    calls: () => failures.calls(),
  };
}

function volumeAnswer(volume: SeenVolume | undefined, clusterId: string): VolumeAnswer {
  if (volume === undefined) return { kind: 'notFound' };
  return {
    kind: 'found',
    tagged: volume.tags[CLUSTER_TAG] === clusterId,
    attachments: volume.attachments.map(({ instanceId, state, isRootDevice, managedByAws }) => ({
      instanceId,
      state,
      isRootDevice,
      managedByAws,
    })),
  };
}

function detachOutcome(order: DetachOrder, volumeId: string): DetachOutcome {
  switch (order) {
    case 'detaching':
      return { kind: 'detaching' };
    case 'InvalidVolume.NotFound':
    case 'InvalidAttachment.NotFound':
    case 'IncorrectState':
      return { kind: 'notAttached' };
    case 'OperationNotPermitted':
    case 'UnsupportedOperation':
      return { kind: 'refused', code: order, message: `volume ${volumeId} cannot be detached` };
    default:
      return order satisfies never;
  }
}
