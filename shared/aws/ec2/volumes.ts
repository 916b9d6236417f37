/** Describes EBS volumes and their attachments. */

import type { Cloud, VolumeAnswer } from '../../fleet/instances/cloud.ts';
import { CLUSTER_TAG } from '../../fleet/instances/cluster-tag.ts';
import type { DescribedVolume, Ec2Api } from './api.ts';
import type { CallPacing, Pass } from './call-pacing.ts';
import { type Described, describeByFilter, everyPage } from './describe-by-filter.ts';
import { Ec2Error, MALFORMED, MALFORMED_ANSWER } from './errors.ts';
import { type Ec2Account, type FoundInstance, findInstances } from './found-instances.ts';

type FoundVolume = Extract<VolumeAnswer, { kind: 'found' }>;

export const volumeDescriber =
  (account: Ec2Account, clusterId: string, pacing: CallPacing): Cloud['describeVolumes'] =>
  async (volumeIds) => {
    const pass = pacing.startPass();
    const volumes = await findVolumes(account.api, pass, [...new Set(volumeIds)]);
    const attachedTo = [...volumes.values()]
      .flatMap((result) => ('kind' in result ? [] : (result.found?.Attachments ?? [])))
      .flatMap(({ InstanceId }) => InstanceId ?? []);
    // A volume has no field for a root device; its instance names it. A missing instance needs no confirmation: its
    // absence decides only how the root device is recognised.
    const instances = await findInstances(account, pass, [...new Set(attachedTo)]);
    pass.end();
    const answers = new Map<string, VolumeAnswer>();
    for (const [id, result] of volumes) {
      answers.set(id, 'kind' in result ? result : volumeAnswer(result.found, instances, clusterId));
    }
    return answers;
  };

const findVolumes = (api: Ec2Api, pass: Pass, ids: readonly string[]) =>
  describeByFilter<DescribedVolume>(pass, ids, async (values) => {
    const found = new Map<string, DescribedVolume>();
    await everyPage({ name: 'volume-id', values }, api.describeVolumes, (page) => {
      if (page.Volumes === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'no volumes');
      for (const volume of page.Volumes) {
        if (volume.VolumeId === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'a volume without id');
        found.set(volume.VolumeId, volume);
      }
    });
    return found;
  });

function volumeAnswer(
  volume: DescribedVolume | undefined,
  instances: ReadonlyMap<string, Described<FoundInstance>>,
  clusterId: string,
): VolumeAnswer {
  if (volume === undefined) return { kind: 'notFound' };
  const attachments: FoundVolume['attachments'][number][] = [];
  for (const { InstanceId, Device, State, AssociatedResource, InstanceOwningService } of volume.Attachments ?? []) {
    if (!isAttachmentState(State)) return MALFORMED;
    const instance = InstanceId === undefined ? undefined : instances.get(InstanceId);
    if (instance !== undefined && 'kind' in instance) return instance;
    const rootDevice = instance?.found?.instance.RootDeviceName;
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

type AttachmentState = FoundVolume['attachments'][number]['state'];
const ATTACHMENT_STATES: ReadonlySet<string | undefined> = new Set<AttachmentState>([
  'attaching',
  'attached',
  'detaching',
  'detached',
  'busy',
]);
const isAttachmentState = (state: string | undefined): state is AttachmentState => ATTACHMENT_STATES.has(state);

/** Root device names of AWS images. They decide for an instance that EC2 no longer returns. */
const isUsualRootDevice = (device: string | undefined): boolean => device === '/dev/xvda' || device === '/dev/sda1';
