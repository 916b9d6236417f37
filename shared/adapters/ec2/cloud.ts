/**
 * The Cloud port over EC2.
 *
 * A pass asks by filter, 200 ids a call, a few calls at a time. What one call fails to answer is `failed` for its ids only.
 * After a throttled call the rest of the pass is answered `failed`/`throttled` without calling: the account's bucket is
 * shared with everybody else's tools, and the next tick comes soon. The following pass then makes half as many calls at a
 * time (one at least), and each clean pass one more again. The bound lives as long as the process.
 *
 * EC2 keeps silent about instances of other accounts. An answer that carries another owner than ours means that our
 * credentials are not what we think: then whatever it lacks is `foreign` too, never `notFound`.
 */
import type { InstanceState } from '../../domain/cloud-node.ts';
import { CLUSTER_TAG } from '../../domain/cluster-tag.ts';
import { type Ec2Instance, instanceScope } from '../../domain/provider-id.ts';
import type { Cloud, DetachOutcome, InstanceAnswer, VolumeAnswer } from '../../ports/cloud.ts';
import type { DescribedInstance, DescribedVolume, DescribeInput, Ec2Api } from './api.ts';
import { detachRefusalOf, Ec2Error, type Failure, failureOf, MALFORMED_ANSWER } from './errors.ts';
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

interface FoundInstance {
  readonly owner: string | undefined;
  readonly instance: DescribedInstance;
}

export function ec2Cloud(options: Ec2CloudOptions): Cloud {
  const { api, region, accountId, clusterId, concurrencyMax = CONCURRENCY_MAX } = options;
  let concurrency = concurrencyMax;

  /** All ids, each with what was found, undefined when the answer lacks it, or why there is no answer. */
  async function pass<Found>(
    ids: readonly string[],
    askChunk: (chunk: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
  ): Promise<Map<string, { readonly found: Found | undefined } | Failure>> {
    const answers = new Map<string, { readonly found: Found | undefined } | Failure>();
    const chunks: string[][] = [];
    for (let first = 0; first < ids.length; first += IDS_PER_CALL) chunks.push(ids.slice(first, first + IDS_PER_CALL));
    let next = 0;
    let throttled = false;
    const work = async (): Promise<void> => {
      for (let chunk = chunks[next++]; chunk !== undefined; chunk = chunks[next++]) {
        if (throttled) {
          for (const id of chunk) answers.set(id, NOT_ASKED);
          continue;
        }
        try {
          const found = await askChunk(chunk);
          for (const id of chunk) answers.set(id, { found: found.get(id) });
        } catch (error) {
          const failure = failureOf(error);
          throttled ||= failure.cause === 'throttled';
          for (const id of chunk) answers.set(id, failure);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, chunks.length) }, work));
    if (throttled) concurrency = Math.max(1, Math.floor(concurrency / 2));
    else if (chunks.length > 0) concurrency = Math.min(concurrencyMax, concurrency + 1);
    return answers;
  }

  async function allPages<Page extends { readonly NextToken?: string | undefined }>(
    filter: DescribeInput['filter'],
    ask: (input: DescribeInput) => Promise<Page>,
    take: (page: Page) => void,
  ): Promise<void> {
    let nextToken: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await ask({ filter, ...(nextToken === undefined ? {} : { nextToken }) });
      take(answer);
      nextToken = answer.NextToken === '' ? undefined : answer.NextToken;
      if (nextToken === undefined) return;
    }
    throw new Ec2Error('TooManyPages', `more than ${PAGES_MAX} pages for ${filter.values.length} ids`);
  }

  const findInstances = (ids: readonly string[]) =>
    pass<FoundInstance>(ids, async (values) => {
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

  return {
    async describeInstances(instances: readonly Ec2Instance[]) {
      const answers = new Map<string, InstanceAnswer>();
      const ids = new Set<string>();
      for (const instance of instances) {
        const scope = instanceScope({ region: instance.region, accountId: undefined }, { region, accountId });
        if (scope.kind === 'foreign') answers.set(instance.instanceId, { answer: scope });
        else ids.add(instance.instanceId);
      }
      for (const [id, result] of await findInstances([...ids])) {
        answers.set(id, 'kind' in result ? { answer: result } : instanceAnswer(result.found));
      }
      return answers;
    },

    async describeVolumes(volumeIds) {
      const results = await pass<DescribedVolume>([...new Set(volumeIds)], async (values) => {
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
      const instances = await findInstances([...new Set(attachedTo)]);
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

  function instanceAnswer(found: FoundInstance | undefined): InstanceAnswer {
    if (found === undefined) return { answer: { kind: 'notFound' } };
    const scope = instanceScope({ region: undefined, accountId: found.owner }, { region, accountId });
    if (scope.kind === 'foreign') return { answer: scope };
    const { instance } = found;
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
    instances: ReadonlyMap<string, { readonly found: FoundInstance | undefined } | Failure>,
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
