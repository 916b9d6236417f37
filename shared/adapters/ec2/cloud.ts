/**
 * The Cloud port over EC2.
 *
 * A pass asks by filter, 200 ids a call, a few calls at a time. What one call fails to answer is `failed` for its ids only.
 * After a throttled call the rest of the pass is answered `failed`/`throttled` without calling: the account's bucket is
 * shared with everybody else's tools, and the next tick comes soon. The following pass then makes half as many calls at a
 * time (one at least), and each clean pass one more again. The bound lives as long as the process.
 *
 * By filter EC2 is silent both about instances that it does not know and about those of other accounts. So each one that
 * the answer lacks is asked about by its id: NotFound is `notFound`, an answer without it `foreign`. Of these questions a
 * pass has a few, in turns (domain/instance-confirmation.ts); an instance whose turn has not come is `failed`.
 *
 * An answer that carries another owner than ours means that our credentials are not what we think: then whatever it lacks
 * is `foreign` too.
 */

import { CLUSTER_TAG } from '../../domain/cloud/cluster-tag.ts';
import type { InstanceState } from '../../domain/cloud/instance.ts';
import {
  type Confirmations,
  hiddenInstanceReason,
  keepConfirmations,
  NOT_CONFIRMED,
  planConfirmations,
} from '../../domain/cloud/instance-confirmation.ts';
import { type Ec2Instance, instanceScope } from '../../domain/cloud/provider-id.ts';
import { defined } from '../../domain/defined.ts';
import type { Cloud, DetachOutcome, InstanceAnswer, VolumeAnswer } from '../../ports/cloud.ts';
import type { DescribedInstance, DescribedVolume, DescribeInput, Ec2Api, InstancesPage } from './api.ts';
import { detachRefusalOf, Ec2Error, type Failure, failureOf, isUnknownInstance, MALFORMED_ANSWER } from './errors.ts';
import { metadataOf } from './metadata.ts';

export interface Ec2CloudOptions {
  readonly api: Ec2Api;
  readonly region: string;
  readonly accountId: string;
  /** Volumes are ours when their tag `nodekeeper.dev/cluster` says so. */
  readonly clusterId: string;
  /** Calls under way at one time, at most. */
  readonly concurrencyMax?: number;
}

/** Values EC2 takes in one filter. */
const IDS_PER_CALL = 200;
/** A filter of 200 ids has one page of results; EC2 may still cut it into some. */
const PAGES_MAX = 10;
const CONCURRENCY_MAX = 4;

const MALFORMED: Failure = { kind: 'failed', cause: 'error', message: `EC2: ${MALFORMED_ANSWER}` };
const NOT_ASKED: Failure = {
  kind: 'failed',
  cause: 'throttled',
  message: 'EC2: not asked, an earlier call of this pass was throttled',
};

const NOT_YET_CONFIRMED: Failure = { kind: 'failed', cause: 'throttled', message: NOT_CONFIRMED };

interface Pass {
  throttled: boolean;
  called: boolean;
}

type Looked<Found> = { readonly found: Found | undefined } | Failure;

interface FoundInstance {
  readonly owner: string | undefined;
  readonly instance: DescribedInstance;
}

export function ec2Cloud(options: Ec2CloudOptions): Cloud {
  const { api, region, accountId, clusterId, concurrencyMax = CONCURRENCY_MAX } = options;
  let concurrency = concurrencyMax;
  let confirmations: Confirmations = new Map();
  let passes = 0;

  /** Calls, a few at a time; none once one of the pass was throttled. */
  async function callEach<Task>(
    pass: Pass,
    tasks: readonly Task[],
    call: (task: Task) => Promise<void>,
    fail: (task: Task, failure: Failure) => void,
  ): Promise<void> {
    let next = 0;
    const work = async (): Promise<void> => {
      for (let at = next++; at < tasks.length; at = next++) {
        const task = tasks[at]!;
        if (pass.throttled) {
          fail(task, NOT_ASKED);
          continue;
        }
        pass.called = true;
        try {
          await call(task);
        } catch (error) {
          const failure = failureOf(error);
          pass.throttled ||= failure.cause === 'throttled';
          fail(task, failure);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, tasks.length) }, work));
  }

  function endPass({ throttled, called }: Pass): void {
    if (throttled) concurrency = Math.max(1, Math.floor(concurrency / 2));
    else if (called) concurrency = Math.min(concurrencyMax, concurrency + 1);
  }

  /** All ids, each with what was found, undefined when the answer lacks it, or why there is no answer. */
  async function askByFilter<Found>(
    pass: Pass,
    ids: readonly string[],
    askChunk: (chunk: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
  ): Promise<Map<string, Looked<Found>>> {
    const answers = new Map<string, Looked<Found>>();
    const chunks: string[][] = [];
    for (let first = 0; first < ids.length; first += IDS_PER_CALL) chunks.push(ids.slice(first, first + IDS_PER_CALL));
    await callEach(
      pass,
      chunks,
      async (chunk) => {
        const found = await askChunk(chunk);
        for (const id of chunk) answers.set(id, { found: found.get(id) });
      },
      (chunk, failure) => {
        for (const id of chunk) answers.set(id, failure);
      },
    );
    return answers;
  }

  async function allPages<Page extends { readonly NextToken?: string | undefined }>(
    filter: DescribeInput['filter'],
    ask: (input: DescribeInput) => Promise<Page>,
    take: (page: Page) => void,
  ): Promise<void> {
    let nextToken: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await ask({ filter, ...defined({ nextToken }) });
      take(answer);
      nextToken = answer.NextToken === '' ? undefined : answer.NextToken;
      if (nextToken === undefined) return;
    }
    throw new Ec2Error('TooManyPages', `more than ${PAGES_MAX} pages for ${filter.values.length} ids`);
  }

  const findInstances = (pass: Pass, ids: readonly string[]) =>
    askByFilter<FoundInstance>(pass, ids, async (values) => {
      const found = new Map<string, FoundInstance>();
      let otherOwner: string | undefined;
      await allPages({ name: 'instance-id', values }, api.describeInstances, (page) => {
        if (page.Reservations === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'no reservations');
        for (const { OwnerId: owner, Instances } of page.Reservations) {
          if (owner !== undefined && owner !== accountId) otherOwner = owner;
          for (const instance of Instances ?? []) {
            if (instance.InstanceId === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'an instance without id');
            found.set(instance.InstanceId, { owner, instance });
          }
        }
      });
      if (otherOwner === undefined) return found;
      for (const id of values) if (!found.has(id)) found.set(id, { owner: otherOwner, instance: {} });
      return found;
    });

  /** What EC2 says of one instance that its answer by filter lacks. Throws what the call throws, unless that is an answer. */
  async function confirm(instanceId: string): Promise<InstanceAnswer> {
    let page: InstancesPage;
    try {
      page = await api.describeInstances({ instanceId });
    } catch (error) {
      if (isUnknownInstance(error)) return { answer: { kind: 'notFound' } };
      throw error;
    }
    if (page.Reservations === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'no reservations');
    // One instance has one page; an answer that is to go on has not said yet that it is without it.
    if (page.NextToken) throw new Ec2Error(MALFORMED_ANSWER, 'more pages for one instance');
    const [shown] = page.Reservations.flatMap(({ OwnerId: owner, Instances = [] }) =>
      Instances.map((instance): FoundInstance => ({ owner, instance })),
    );
    if (shown === undefined) return { answer: { kind: 'foreign', reason: hiddenInstanceReason(instanceId) } };
    if (shown.instance.InstanceId !== instanceId) throw new Ec2Error(MALFORMED_ANSWER, 'another instance');
    return instanceAnswer(shown);
  }

  /** Answers for those that the filtered answer lacks. */
  async function confirmMissing(
    pass: Pass,
    missing: readonly string[],
    answers: Map<string, InstanceAnswer>,
  ): Promise<void> {
    passes += 1;
    const number = passes;
    const plan = planConfirmations(missing, confirmations, number);
    const asked = new Set<string>();
    await callEach(
      pass,
      plan.ask,
      async (id) => {
        asked.add(id);
        answers.set(id, await confirm(id));
      },
      (id, failure) => answers.set(id, { answer: failure }),
    );
    for (const id of plan.foreign) answers.set(id, { answer: { kind: 'foreign', reason: hiddenInstanceReason(id) } });
    for (const id of plan.later) answers.set(id, { answer: NOT_YET_CONFIRMED });
    const kinds = [...answers].flatMap(([id, { answer }]) =>
      answer.kind === 'notEc2' ? [] : [[id, answer.kind] as const],
    );
    confirmations = keepConfirmations(confirmations, number, kinds, asked);
  }

  return {
    async describeInstances(instances: readonly Ec2Instance[]) {
      const answers = new Map<string, InstanceAnswer>();
      const ids = new Set<string>();
      for (const instance of instances) {
        const scope = instanceScope({ region: instance.region, accountId: undefined }, { region, accountId });
        if (scope.kind === 'foreign') answers.set(instance.instanceId, { answer: scope });
        else ids.add(instance.instanceId);
      }
      if (ids.size === 0) return answers;
      const pass: Pass = { throttled: false, called: false };
      const missing: string[] = [];
      for (const [id, result] of await findInstances(pass, [...ids])) {
        if ('kind' in result) answers.set(id, { answer: result });
        else if (result.found !== undefined) answers.set(id, instanceAnswer(result.found));
        else missing.push(id);
      }
      await confirmMissing(pass, missing, answers);
      endPass(pass);
      return answers;
    },

    async describeVolumes(volumeIds) {
      const pass: Pass = { throttled: false, called: false };
      const results = await askByFilter<DescribedVolume>(pass, [...new Set(volumeIds)], async (values) => {
        const found = new Map<string, DescribedVolume>();
        await allPages({ name: 'volume-id', values }, api.describeVolumes, (page) => {
          if (page.Volumes === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'no volumes');
          for (const volume of page.Volumes) {
            if (volume.VolumeId === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'a volume without id');
            found.set(volume.VolumeId, volume);
          }
        });
        return found;
      });
      const found = [...results.values()].flatMap((result) => ('kind' in result ? [] : (result.found ?? [])));
      // A volume does not say whether it is a root device; the instance names its own.
      const attachedTo = found.flatMap((volume) =>
        (volume.Attachments ?? []).flatMap(({ InstanceId }) => InstanceId ?? []),
      );
      // One that is missing need not be confirmed: nothing is concluded from its absence but which device may be its root.
      const instances = await findInstances(pass, [...new Set(attachedTo)]);
      endPass(pass);
      const answers = new Map<string, VolumeAnswer>();
      for (const [id, result] of results) {
        answers.set(id, 'kind' in result ? result : volumeAnswer(result.found, instances));
      }
      return answers;
    },

    async detachVolume(request): Promise<DetachOutcome> {
      try {
        await api.detachVolume(request);
        return { kind: 'detaching' };
      } catch (error) {
        const refusal = detachRefusalOf(error);
        if (refusal === undefined) return failureOf(error);
        return refusal.kind === 'notAttached' ? refusal : { ...refusal, message: (error as Error).message };
      }
    },
  };

  function instanceAnswer({ owner, instance }: FoundInstance): InstanceAnswer {
    const scope = instanceScope({ region: undefined, accountId: owner }, { region, accountId });
    if (scope.kind === 'foreign') return { answer: scope };
    const state = instance.State?.Name;
    if (!isInstanceState(state)) return { answer: MALFORMED };
    const launchedAtMs = instance.LaunchTime?.getTime();
    const answer = {
      kind: 'found',
      state,
      launchedAtMs: launchedAtMs === undefined || Number.isNaN(launchedAtMs) ? undefined : launchedAtMs,
    } as const;
    return state === 'terminated' ? { answer } : { answer, metadata: metadataOf(instance, region) };
  }

  function volumeAnswer(
    volume: DescribedVolume | undefined,
    instances: ReadonlyMap<string, Looked<FoundInstance>>,
  ): VolumeAnswer {
    if (volume === undefined) return { kind: 'notFound' };
    const attachments: Extract<VolumeAnswer, { kind: 'found' }>['attachments'][number][] = [];
    for (const { InstanceId, Device, State, AssociatedResource, InstanceOwningService } of volume.Attachments ?? []) {
      if (!isAttachmentState(State)) return MALFORMED;
      const looked = InstanceId === undefined ? undefined : instances.get(InstanceId);
      if (looked !== undefined && 'kind' in looked) return looked;
      const rootDevice = looked?.found?.instance.RootDeviceName;
      attachments.push({
        instanceId: InstanceId ?? AssociatedResource ?? '',
        state: State,
        isRootDevice: rootDevice === undefined ? isUsualRootDevice(Device) : Device === rootDevice,
        managedByAws:
          AssociatedResource !== undefined || InstanceOwningService !== undefined || volume.Operator?.Managed === true,
      });
    }
    const tagged = (volume.Tags ?? []).some(({ Key, Value }) => Key === CLUSTER_TAG && Value === clusterId);
    return { kind: 'found', tagged, attachments };
  }
}

const INSTANCE_STATES: ReadonlySet<string | undefined> = new Set<InstanceState>([
  'pending',
  'running',
  'stopping',
  'stopped',
  'shutting-down',
  'terminated',
]);
const isInstanceState = (state: string | undefined): state is InstanceState => INSTANCE_STATES.has(state);

type AttachmentState = Extract<VolumeAnswer, { kind: 'found' }>['attachments'][number]['state'];
const ATTACHMENT_STATES: ReadonlySet<string | undefined> = new Set<AttachmentState>([
  'attaching',
  'attached',
  'detaching',
  'detached',
  'busy',
]);
const isAttachmentState = (state: string | undefined): state is AttachmentState => ATTACHMENT_STATES.has(state);

/** Of an instance that EC2 no longer tells of: the names AWS's images give their root. */
const isUsualRootDevice = (device: string | undefined): boolean => device === '/dev/xvda' || device === '/dev/sda1';
