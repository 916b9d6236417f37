/**
 * The cloud in memory: the Cloud port over a CloudWorld, with controls for what befalls machines and for how the cloud
 * misbehaves. test/contract/cloud.ts runs the same suite on it and on the EC2 adapter.
 *
 * `answerDelayMs` makes answers show the world as it was that long ago, as EC2's may: an instance younger than the delay
 * is not known yet. Orders act on the present.
 */

import { CLUSTER_TAG } from '../../domain/cloud/cluster-tag.ts';
import type { InstanceMetadata } from '../../domain/cloud/instance.ts';
import {
  type Confirmations,
  hiddenInstanceReason,
  keepConfirmations,
  NOT_CONFIRMED,
  planConfirmations,
} from '../../domain/cloud/instance-confirmation.ts';
import { instanceScope } from '../../domain/cloud/provider-id.ts';
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
  /** Every call fails from now on, or the next `calls` of them, once `after` more went well; null ends it. */
  fail(trouble: CloudTrouble | null, options?: { readonly calls?: number; readonly after?: number }): void;
  setAnswerDelay(answerDelayMs: number): void;
  /** Changes of state since last taken, oldest first. */
  takeStateChanges(): InstanceStateChange[];
  calls(): CloudCalls;
}

/** Values of one filter in one call. */
const IDS_PER_CALL = 200;

type Failure = Extract<VolumeAnswer, { kind: 'failed' }>;

const NOT_YET_CONFIRMED: Failure = { kind: 'failed', cause: 'throttled', message: NOT_CONFIRMED };

export function memoryCloud(options: MemoryCloudOptions): MemoryCloud {
  const { region, accountId, clusterId = 'nodekeeper' } = options;
  const world = new CloudWorld(options);
  const ours = { region, accountId };
  const calls = { describeInstances: 0, describeVolumes: 0, detachVolume: 0 };
  let confirmations: Confirmations = new Map();
  let passes = 0;
  let answerDelayMs = options.answerDelayMs ?? 0;
  let trouble: CloudTrouble | null = null;
  let troubledCalls = Number.POSITIVE_INFINITY;
  let sparedCalls = 0;

  const call = (name: keyof CloudCalls): Failure | undefined => {
    calls[name] += 1;
    if (sparedCalls > 0) {
      sparedCalls -= 1;
      return undefined;
    }
    if (trouble === null || troubledCalls <= 0) return undefined;
    troubledCalls -= 1;
    return failureOf(trouble);
  };

  /** As the EC2 adapter does: ids by the call's worth; nothing more is asked once a call was throttled. */
  function ask<Answer>(
    name: keyof CloudCalls,
    ids: readonly string[],
    answerFor: (id: string, momentMs: number) => Answer,
    { idsPerCall = IDS_PER_CALL, throttledBefore }: { idsPerCall?: number; throttledBefore?: Failure | undefined } = {},
  ): Map<string, Answer | Failure> {
    const answers = new Map<string, Answer | Failure>();
    const momentMs = world.nowMs - answerDelayMs;
    let throttle = throttledBefore;
    for (let first = 0; first < ids.length; first += idsPerCall) {
      const failure: Failure | undefined = throttle ?? call(name);
      if (failure?.cause === 'throttled') throttle = failure;
      for (const id of ids.slice(first, first + idsPerCall)) answers.set(id, failure ?? answerFor(id, momentMs));
    }
    return answers;
  }

  /** By id, in turns: nobody has it, or somebody else does. */
  function confirm(missing: readonly string[], answers: Map<string, InstanceAnswer>, throttled?: Failure): void {
    passes += 1;
    const plan = planConfirmations(missing, confirmations, passes);
    const before = calls.describeInstances;
    const byId = ask<InstanceAnswer>(
      'describeInstances',
      plan.ask,
      (id, momentMs) =>
        world.instance(id, momentMs) === undefined
          ? { answer: { kind: 'notFound' } }
          : { answer: { kind: 'foreign', reason: hiddenInstanceReason(id) } },
      { idsPerCall: 1, throttledBefore: throttled },
    );
    const asked = new Set(plan.ask.slice(0, calls.describeInstances - before));
    for (const [id, answer] of byId) answers.set(id, 'kind' in answer ? { answer } : answer);
    for (const id of plan.foreign) answers.set(id, { answer: { kind: 'foreign', reason: hiddenInstanceReason(id) } });
    for (const id of plan.later) answers.set(id, { answer: NOT_YET_CONFIRMED });
    const kinds = [...answers].flatMap(([id, { answer }]) =>
      answer.kind === 'notEc2' ? [] : [[id, answer.kind] as const],
    );
    confirmations = keepConfirmations(confirmations, passes, kinds, asked);
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
      if (toAsk.size === 0) return answers;
      const missing: string[] = [];
      let throttled: Failure | undefined;
      const byFilter = ask<SeenInstance | undefined>('describeInstances', [...toAsk], (id, momentMs) => {
        const seen = world.instance(id, momentMs);
        return seen?.accountId === accountId ? seen : undefined;
      });
      for (const [id, seen] of byFilter) {
        if (seen === undefined) missing.push(id);
        else if ('kind' in seen) answers.set(id, { answer: seen });
        else answers.set(id, answerOf(seen, region));
        if (seen !== undefined && 'kind' in seen && seen.cause === 'throttled') throttled = seen;
      }
      confirm(missing, answers, throttled);
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
    fail(next, { calls: count = Number.POSITIVE_INFINITY, after = 0 } = {}) {
      trouble = next;
      troubledCalls = count;
      sparedCalls = after;
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

function answerOf(seen: SeenInstance, region: string): InstanceAnswer {
  const answer = { kind: 'found', state: seen.state, launchedAtMs: seen.launchedAtMs } as const;
  if (seen.state === 'terminated') return { answer };
  const metadata: InstanceMetadata = {
    instanceType: seen.instanceType,
    zone: seen.zone,
    region,
    addresses: seen.addresses,
    additionalLabels: {},
  };
  return { answer, metadata };
}
