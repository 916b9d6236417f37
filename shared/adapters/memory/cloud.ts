/**
 * The cloud in memory: the Cloud port over a CloudWorld, with controls for what befalls machines and for how the cloud
 * misbehaves. test/contract/cloud.ts runs the same suite on it and on the EC2 adapter.
 *
 * `answerDelayMs` makes answers show the world as it was that long ago, as EC2's may: an instance younger than the delay
 * is not known yet. Orders act on the present.
 */
import type { InstanceMetadata } from '../../domain/cloud-initialisation.ts';
import { CLUSTER_TAG } from '../../domain/cluster-tag.ts';
import { instanceScope } from '../../domain/provider-id.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cloud, DetachOutcome, InstanceAnswer, VolumeAnswer } from '../../ports/cloud.ts';
import {
  type CloudAttachment,
  type CloudInstance,
  type CloudVolume,
  CloudWorld,
  type CloudWorldOptions,
  type InstanceOrder,
  type InstanceStateChange,
  type SeenInstance,
} from './cloud-world.ts';

export type CloudTrouble = 'Throttling' | 'RequestLimitExceeded' | 'InternalError' | 'timeout';

export interface MemoryCloudOptions extends Omit<CloudWorldOptions, 'clock' | 'accountId'> {
  readonly clock: Clock;
  readonly region: string;
  readonly accountId: string;
  /** Volumes are ours when their tag `nodekeeper.dev/cluster` says so. */
  readonly clusterId?: string;
  readonly answerDelayMs?: number;
}

/** Calls so far, as the EC2 adapter would have made them. */
export interface CloudCalls {
  readonly describeInstances: number;
  readonly describeVolumes: number;
  readonly detachVolume: number;
}

export interface MemoryCloud extends Cloud {
  readonly world: CloudWorld;
  /** An instance, running unless said otherwise; takes the place of one with the same id. */
  put(instance: CloudInstance): void;
  terminate(instanceId: string): InstanceOrder;
  stop(instanceId: string): InstanceOrder;
  /** Undoes `vanish`, too. */
  start(instanceId: string): InstanceOrder;
  /** The id is unknown from now on, without a word of termination. */
  vanish(instanceId: string): InstanceOrder;
  putVolume(volume: CloudVolume): void;
  attachVolume(volumeId: string, attachment: Pick<CloudAttachment, 'instanceId'> & Partial<CloudAttachment>): boolean;
  deleteVolume(volumeId: string): void;
  /** Every call fails from now on, or the next `calls` of them; null ends it. */
  fail(trouble: CloudTrouble | null, options?: { readonly calls?: number }): void;
  setAnswerDelay(answerDelayMs: number): void;
  /** Changes of state since last taken, oldest first. */
  takeStateChanges(): InstanceStateChange[];
  calls(): CloudCalls;
}

/** Values of one filter in one call. */
const IDS_PER_CALL = 200;

type Failure = Extract<VolumeAnswer, { kind: 'failed' }>;

export function memoryCloud(options: MemoryCloudOptions): MemoryCloud {
  const { region, accountId, clusterId = 'nodekeeper' } = options;
  const world = new CloudWorld(options);
  const ours = { region, accountId };
  const calls = { describeInstances: 0, describeVolumes: 0, detachVolume: 0 };
  let answerDelayMs = options.answerDelayMs ?? 0;
  let trouble: CloudTrouble | null = null;
  let troubledCalls = Number.POSITIVE_INFINITY;

  const call = (name: keyof CloudCalls): Failure | undefined => {
    calls[name] += 1;
    if (trouble === null || troubledCalls <= 0) return undefined;
    troubledCalls -= 1;
    return failureOf(trouble);
  };

  /** As the EC2 adapter does: ids by the call's worth; nothing more is asked once a call was throttled. */
  function ask<Answer>(
    name: keyof CloudCalls,
    ids: readonly string[],
    answerFor: (id: string, momentMs: number) => Answer,
  ): Map<string, Answer | Failure> {
    const answers = new Map<string, Answer | Failure>();
    const momentMs = world.nowMs - answerDelayMs;
    let throttle: Failure | undefined;
    for (let first = 0; first < ids.length; first += IDS_PER_CALL) {
      const failure: Failure | undefined = throttle ?? call(name);
      if (failure?.cause === 'throttled') throttle = failure;
      for (const id of ids.slice(first, first + IDS_PER_CALL)) answers.set(id, failure ?? answerFor(id, momentMs));
    }
    return answers;
  }

  return {
    world,

    async describeInstances(instances) {
      const answers = new Map<string, InstanceAnswer>();
      const toAsk = new Set<string>();
      for (const instance of instances) {
        const scope = instanceScope({ region: instance.region, accountId: undefined }, ours);
        if (scope.kind === 'foreign') answers.set(instance.instanceId, { answer: scope });
        else toAsk.add(instance.instanceId);
      }
      const asked = ask<InstanceAnswer>('describeInstances', [...toAsk], (id, momentMs) => {
        const seen = world.instance(id, momentMs);
        return seen === undefined ? { answer: { kind: 'notFound' } } : answerOf(seen, ours);
      });
      for (const [id, answer] of asked) answers.set(id, 'kind' in answer ? { answer } : answer);
      return answers;
    },

    async describeVolumes(volumeIds) {
      return ask<VolumeAnswer>('describeVolumes', [...new Set(volumeIds)], (id, momentMs) => {
        const volume = world.volume(id, momentMs);
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
      });
    },

    async detachVolume({ volumeId, instanceId, force }): Promise<DetachOutcome> {
      const failure = call('detachVolume');
      if (failure !== undefined) return failure;
      const outcome = world.detachVolume(volumeId, instanceId, force);
      switch (outcome) {
        case 'detaching':
          return { kind: 'detaching' };
        case 'InvalidVolume.NotFound':
        case 'InvalidAttachment.NotFound':
        case 'IncorrectState':
          return { kind: 'notAttached' };
        case 'OperationNotPermitted':
        case 'UnsupportedOperation':
          return { kind: 'refused', code: outcome, message: `volume ${volumeId} cannot be detached` };
        default:
          return outcome satisfies never;
      }
    },

    put: (instance) => world.put(instance),
    terminate: (id) => world.terminate(id),
    stop: (id) => world.stop(id),
    start: (id) => world.start(id),
    vanish: (id) => world.vanish(id),
    putVolume: (volume) => world.putVolume(volume),
    attachVolume: (id, attachment) => world.attachVolume(id, attachment),
    deleteVolume: (id) => world.deleteVolume(id),
    fail(next, { calls: count = Number.POSITIVE_INFINITY } = {}) {
      trouble = next;
      troubledCalls = count;
    },
    setAnswerDelay(delayMs) {
      answerDelayMs = delayMs;
    },
    takeStateChanges: () => world.takeStateChanges(),
    calls: () => ({ ...calls }),
  };
}

function failureOf(trouble: CloudTrouble): Failure {
  const causes = {
    Throttling: 'throttled',
    RequestLimitExceeded: 'throttled',
    InternalError: 'error',
    timeout: 'timeout',
  } as const;
  return { kind: 'failed', cause: causes[trouble], message: `EC2: ${trouble}` };
}

function answerOf(seen: SeenInstance, ours: { readonly region: string; readonly accountId: string }): InstanceAnswer {
  const scope = instanceScope({ region: undefined, accountId: seen.accountId }, ours);
  if (scope.kind === 'foreign') return { answer: scope };
  const answer = { kind: 'found', state: seen.state, launchedAtMs: seen.launchedAtMs } as const;
  if (seen.state === 'terminated') return { answer };
  const metadata: InstanceMetadata = {
    providerId: `aws:///${seen.zone}/${seen.instanceId}`,
    instanceType: seen.instanceType,
    zone: seen.zone,
    region: ours.region,
    addresses: seen.addresses,
    additionalLabels: {},
  };
  return { answer, metadata };
}
