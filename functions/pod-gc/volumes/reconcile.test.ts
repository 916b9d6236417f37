/** Unused volumes, from the pod that leaves the node to the attachment that is closed. */
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { replay } from '../../../cli/replay.ts';
import { decisionStore } from '../../../shared/decisions/decision-store.ts';
import { podGcStore } from '../../../shared/kinds/pods/work-list-store.ts';
import type { Taint } from '../../../shared/kubernetes/kubernetes.ts';
import { type ControlledFleet, type FleetOptions, settledFleet } from '../../../test/support/controlled-fleet.ts';
import { dyingStore } from '../../../test/support/failing-store.ts';

const INSTANCE = 'i-0123456789abcdef0';
const OTHER = 'i-0fedcba9876543210';
const VOLUME = 'vol-0aa';
const NAME = `kubernetes.io/csi/ebs.csi.aws.com^${VOLUME}`;
const CLAIM = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
const OUT_OF_SERVICE: Taint = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' };

interface Story {
  readonly volume?: { readonly tags?: Record<string, string>; readonly attachment?: object };
  readonly attachment?: { readonly name?: string; readonly spec?: object; readonly metadata?: object };
  readonly options?: FleetOptions;
}

let fleet: ControlledFleet;

/**
 * Node a-0 on an instance, with a volume that pod db has mounted by a claim; b-0 keeps the rest of the fleet healthy.
 */
async function attached(story: Story = {}): Promise<void> {
  // The safety gate has a test of its own.
  const options = { ...story.options, policy: { tickGate: 'off', ...story.options?.policy } as const };
  ({ fleet } = await settledFleet({ a: 1, b: 1 }, { hasCloud: true, ...options }));
  fleet.cloud.put({ instanceId: INSTANCE, zone: 'eu-central-1a', instanceType: 'm7g.large', launchedAtMs: 0 });
  fleet.cloud.putVolume({
    volumeId: VOLUME,
    zone: 'eu-central-1a',
    tags: story.volume?.tags ?? { 'nodekeeper.dev/cluster': 'test' },
  });
  fleet.cloud.attachVolume(VOLUME, { instanceId: INSTANCE, mounted: true, ...story.volume?.attachment });
  await fleet.changeNode('a-0', (node) => ({
    ...node,
    spec: { ...node.spec, providerID: `aws:///eu-central-1a/${INSTANCE}` },
    status: { ...node.status, volumesAttached: [{ name: NAME, devicePath: '' }], volumesInUse: [NAME] },
  }));
  await fleet.attach(story.attachment?.name ?? 'va', 'a-0', {
    spec: { source: { inlineVolumeSpec: { csi: { driver: 'ebs.csi.aws.com', volumeHandle: VOLUME } } } },
    ...story.attachment,
  });
  await fleet.addPod('db', 'a-0', { volumes: CLAIM });
  await fleet.streams();
  fleet.at(0);
  await fleet.collect();
}

const unhealthy = () => fleet.post('a-0', 'Unknown');
const outOfService = () =>
  fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [OUT_OF_SERVICE] } }));
const unmount = () =>
  fleet.changeNode('a-0', ({ status: { volumesInUse: _, ...status } = {}, ...node }) => ({ ...node, status }));

async function podGoes(): Promise<void> {
  await fleet.removePod('db');
  await fleet.streams();
}

/** Ticks every 20 s up to a time, inclusive. Returns the seconds of the detach requests to EC2. */
async function passes(to: number): Promise<number[]> {
  const asked: number[] = [];
  for (let seconds = Math.floor(fleet.seconds() / 20) * 20 + 20; seconds <= to; seconds += 20) {
    const before = fleet.cloud.calls().detachVolume;
    fleet.at(seconds);
    await fleet.collect();
    if (fleet.cloud.calls().detachVolume > before) asked.push(seconds);
  }
  return asked;
}

const metrics = (name: string) =>
  fleet.metrics.filter((each) => each.name === `attachdetach_controller_${name}`).map(({ reason }) => reason);
const withheld = async () =>
  (await fleet.events('VolumeDetachWithheld')).map((event) => {
    const about = event['involvedObject'] as { kind: string; name: string };
    return `${about.kind} ${about.name}: ${String(event['message'])}`;
  });
const volumeRows = async () => (await podGcStore(fleet.tables).read()).volumes;
const attachmentsInCloud = async () => {
  const answer = (await fleet.cloud.describeVolumes([VOLUME])).get(VOLUME);
  return answer?.kind === 'found' ? answer.attachments.map(({ state }) => state) : [];
};

describe('a volume of a node out of service', () => {
  beforeEach(async () => {
    await attached();
    await unhealthy();
    await outOfService();
    await fleet.streams();
  });

  it('is force-detached with its pod: removed from volumesAttached first, the attachment closed once EC2 reports it detached', async () => {
    const seen: unknown[] = [];
    const { detachVolume } = fleet.cloud;
    Object.assign(fleet.cloud, {
      detachVolume: async (request: Parameters<typeof detachVolume>[0]) => {
        seen.push(request, (await fleet.node('a-0'))?.status?.['volumesAttached']);
        return detachVolume(request);
      },
    });
    await podGoes();
    expect(await passes(20)).toEqual([20]);
    expect(seen).toEqual([{ volumeId: VOLUME, instanceId: INSTANCE, force: true }, undefined]);
    expect(metrics('forced_detaches')).toEqual(['out-of-service']);
    expect(await fleet.attachment('va')).toBeDefined();
    expect(await passes(40)).toEqual([]);
    expect(await fleet.attachment('va')).toBeUndefined();
    await passes(60);
    expect(await volumeRows()).toEqual([]);
    expect(await withheld()).toEqual([]);
  });

  it('FD-10 stays while its pod is only terminating on a node that is Ready again', async () => {
    await fleet.post('a-0', 'True');
    await fleet.endPod('db');
    await fleet.streams();
    expect(await passes(2_000)).toEqual([]);
  });

  it('is detached after its pod was deleted: two ticks from a stuck pod to a free volume', async () => {
    await fleet.endPod('db');
    await fleet.streams();
    expect(await passes(40)).toEqual([40]);
    expect(await fleet.pod('db')).toBeUndefined();
  });

  it.each([
    ['does not carry our tag', { tags: {} }, 'volume does not carry our tag'],
    ['is the root device', { attachment: { isRootDevice: true } }, 'volume is the root device'],
    ['is managed by an AWS service', { attachment: { managedByAws: true } }, 'attachment is managed by an AWS service'],
    [
      'is attached to another instance',
      { attachment: { instanceId: OTHER } },
      `volume is attached to ${OTHER}, the node is ${INSTANCE}`,
    ],
  ])('stays when it %s, and one event says why', async (_, volume, why) => {
    await attached({ volume });
    await unhealthy();
    await outOfService();
    await podGoes();
    expect(await passes(400)).toEqual([]);
    expect(await withheld()).toEqual([`Node a-0: Volume ${VOLUME} is not detached from node a-0: ${why}`]);
    expect(new Set(metrics('withheld_detaches'))).toEqual(new Set(['refused']));
    expect(await attachmentsInCloud()).toEqual(['attached']);
  });

  it('stays when EC2 refuses or fails the request, and is detached once EC2 accepts', async () => {
    await podGoes();
    fleet.cloud.fail('Throttling');
    expect(await passes(40)).toEqual([]);
    expect(await withheld()).toEqual([
      `Node a-0: Volume ${VOLUME} is not detached from node a-0: EC2 request about it failed`,
    ]);
    fleet.cloud.fail(null);
    expect(await passes(60)).toEqual([60]);
  });

  it('stays when the taint is removed and the node is Ready at the commit that removes it from volumesAttached', async () => {
    await podGoes();
    const { describeVolumes } = fleet.cloud;
    Object.assign(fleet.cloud, {
      describeVolumes: async (ids: readonly string[]) => {
        const answer = await describeVolumes(ids);
        await fleet.post('a-0', 'True');
        await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [] } }));
        return answer;
      },
    });
    expect(await passes(100)).toEqual([]);
    expect((await fleet.node('a-0'))?.status?.['volumesAttached']).toHaveLength(1);
  });

  it('stays when the taint is removed at that commit and the node is not Ready: the six-minute timeout applies', async () => {
    await podGoes();
    const { describeVolumes } = fleet.cloud;
    Object.assign(fleet.cloud, {
      describeVolumes: async (ids: readonly string[]) => {
        const answer = await describeVolumes(ids);
        await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [] } }));
        return answer;
      },
    });
    expect(await passes(360)).toEqual([]);
    expect((await fleet.node('a-0'))?.status?.['volumesAttached']).toHaveLength(1);
  });

  it('stays when a pod that uses it is bound', async () => {
    await podGoes();
    const { describeVolumes } = fleet.cloud;
    Object.assign(fleet.cloud, {
      describeVolumes: async (ids: readonly string[]) => {
        if ((await fleet.pod('db')) === undefined) await fleet.addPod('db', 'a-0', { volumes: CLAIM });
        return describeVolumes(ids);
      },
    });
    expect(await passes(100)).toEqual([]);
  });

  it('is closed even when another owner still has a finalizer on its attachment', async () => {
    await attached({ attachment: { metadata: { finalizers: ['external-attacher/ebs-csi-aws-com'] } } });
    await unhealthy();
    await outOfService();
    await podGoes();
    await passes(100);
    const attachment = await fleet.attachment('va');
    expect(attachment?.status).toEqual({ attached: false });
    expect(attachment?.metadata.deletionTimestamp).toBeDefined();
    expect(await volumeRows()).toEqual([]);
  });

  it.each([false, true])('is detached once, wherever a tick was killed (last call done: %s)', async (lastHappens) => {
    for (let atCall = 1; ; atCall += 1) {
      await attached();
      await unhealthy();
      await outOfService();
      await podGoes();
      fleet.at(20);
      const dying = dyingStore(fleet.tables, atCall, lastHappens);
      await fleet.collect(fleet.makeControllers(dying.items)).catch(() => 'dead');
      const survived = dying.calls() < atCall;
      await passes(100);
      expect(await attachmentsInCloud(), String(atCall)).toEqual([]);
      expect(await fleet.attachment('va'), String(atCall)).toBeUndefined();
      expect((await fleet.node('a-0'))?.status?.['volumesAttached']).toBeUndefined();
      expect(await volumeRows()).toEqual([]);
      if (survived) {
        expect(atCall).toBeGreaterThan(8);
        break;
      }
    }
  });

  it('is detached by one of two ticks that run at once, or requested twice alike', async () => {
    await podGoes();
    fleet.at(20);
    const slot = Math.floor(fleet.nowMs() / 20_000);
    await Promise.all([fleet.controllers.tickPodGc(slot), fleet.makeControllers(fleet.tables).tickPodGc(slot + 1)]);
    await fleet.streams();
    await passes(100);
    expect(await fleet.attachment('va')).toBeUndefined();
    expect(metrics('forced_detaches').length).toBeLessThanOrEqual(2);
  });
});

describe('a volume of an unhealthy node', () => {
  it('FD-02 stays for six minutes and is detached just after them, without Force from a running machine', async () => {
    await attached();
    await unhealthy();
    await podGoes();
    // First seen unused at 20 s.
    expect(await passes(380)).toEqual([]);
    expect(await passes(400)).toEqual([400]);
    expect(metrics('forced_detaches')).toEqual(['timeout']);
    expect(await attachmentsInCloud()).toEqual(['busy']);
    // Only Force would help now, and no user has declared the node out of service.
    expect(await passes(800)).toEqual([]);
    await outOfService();
    await fleet.streams();
    expect(await passes(820)).toEqual([820]);
    await passes(840);
    expect(await fleet.attachment('va')).toBeUndefined();
  });

  it('is force-detached from a stopped machine', async () => {
    await attached();
    await unhealthy();
    fleet.cloud.stop(INSTANCE);
    await podGoes();
    expect(await passes(420)).toEqual([400]);
    expect(await fleet.attachment('va')).toBeUndefined();
  });

  it('FD-06 waits again after a pod that used it came and left, even between two ticks', async () => {
    await attached();
    await unhealthy();
    await podGoes();
    await passes(300);
    fleet.at(305);
    await fleet.addPod('db', 'a-0', { volumes: CLAIM });
    fleet.at(310);
    await fleet.removePod('db');
    await fleet.streams();
    expect(await passes(680)).toEqual([]);
    expect(await passes(700)).toEqual([700]);
  });

  it('FD-04 stays when detach on timeout is disabled, and is reported once', async () => {
    await attached({ options: { policy: { disableForceDetachOnTimeout: true } } });
    await unhealthy();
    await podGoes();
    expect(await passes(1_000)).toEqual([]);
    expect(await withheld()).toHaveLength(1);
    expect(new Set(metrics('withheld_detaches'))).toEqual(new Set(['switched-off']));
  });

  it('stays while the safety gate is closed', async () => {
    await attached({ options: { policy: { tickGate: 'on' } } });
    await unhealthy();
    await podGoes();
    // node-monitor has not run at all.
    expect(await passes(600)).toEqual([]);
    expect(new Set(metrics('withheld_detaches'))).toEqual(new Set(['doubt']));
  });

  it('is detached at once when it is not mounted', async () => {
    await attached();
    await unhealthy();
    await unmount();
    await podGoes();
    expect(await passes(40)).toEqual([20]);
    expect(metrics('forced_detaches')).toEqual([]);
  });

  it('FD-10 stays while a pod object uses it, terminating or not', async () => {
    await attached();
    await unhealthy();
    await fleet.endPod('db');
    await fleet.streams();
    expect(await passes(1_800)).toEqual([]);
    expect(await fleet.pod('db')).toBeDefined();
  });

  it('stays while another pod on the node has a claim, which may be on this volume', async () => {
    await attached();
    await unhealthy();
    await fleet.addPod('other', 'a-0', { volumes: CLAIM });
    await podGoes();
    expect(await passes(1_000)).toEqual([]);
    await fleet.removePod('other');
    await fleet.streams();
    expect(await passes(1_380)).toEqual([]);
    expect(await passes(1_400)).toEqual([1_400]);
  });
});

describe('a volume of a healthy node', () => {
  it.each([true, false])('stays, mounted or not (mounted: %s), without a time limit', async (mounted) => {
    await attached();
    if (!mounted) await unmount();
    await podGoes();
    expect(await passes(2_000)).toEqual([]);
    expect(fleet.cloud.calls()).toMatchObject({ describeVolumes: 0, detachVolume: 0 });
  });

  it('waits from the moment its node is first seen unhealthy', async () => {
    await attached();
    await podGoes();
    await passes(600);
    await unhealthy();
    expect(await passes(980)).toEqual([]);
    expect(await passes(1_000)).toEqual([1_000]);
  });
});

describe('a volume of a deleted Node', () => {
  it('FD-08 is detached just after six minutes from the instance that the Node had', async () => {
    await attached();
    await podGoes();
    await fleet.removeNode('a-0');
    await fleet.streams();
    expect(await passes(380)).toEqual([]);
    expect(await passes(400)).toEqual([400]);
  });

  it('is detached after its pods were deleted as orphans', async () => {
    await attached();
    await fleet.removeNode('a-0');
    await fleet.streams();
    // Pods deleted at 40 s, first seen unused at 60 s.
    expect(await passes(420)).toEqual([]);
    expect(await passes(600)).toEqual([440]);
    expect(await fleet.pod('db')).toBeUndefined();
  });

  it('stays when it is attached to another instance by then', async () => {
    await attached();
    await podGoes();
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.cloud.putVolume({ volumeId: VOLUME, zone: 'a', tags: { 'nodekeeper.dev/cluster': 'test' } });
    fleet.cloud.attachVolume(VOLUME, { instanceId: OTHER, mounted: true });
    expect(await passes(1_000)).toEqual([]);
    expect(await withheld()).toEqual([
      `VolumeAttachment va: Volume ${VOLUME} is not detached from node a-0: volume is attached to ${OTHER}, the node is ${INSTANCE}`,
    ]);
  });
});

describe('the volume of an attachment', () => {
  const persistent = { source: { persistentVolumeName: 'pv-1' } };
  const csiName = `csi-${createHash('sha256').update(`${VOLUME}ebs.csi.aws.coma-0`).digest('hex')}`;
  const detachedOf = async (attachment: NonNullable<Story['attachment']>): Promise<number[]> => {
    await attached({ attachment });
    await unhealthy();
    await outOfService();
    await podGoes();
    return passes(60);
  };

  it('is identified by its annotation', async () => {
    const metadata = { annotations: { 'nodekeeper.dev/volume-id': VOLUME } };
    expect(await detachedOf({ spec: persistent, metadata })).toEqual([20]);
  });

  it('is identified by the name that the CSI attacher derives, among the volumes of the node', async () => {
    expect(await detachedOf({ name: csiName, spec: persistent })).toEqual([20]);
    expect(await fleet.attachment(csiName)).toBeUndefined();
  });

  it('is unknown otherwise: it stays, and the event says what to do', async () => {
    expect(await detachedOf({ spec: persistent })).toEqual([]);
    expect((await withheld())[0]).toContain('nodekeeper.dev/volume-id');
    expect(new Set(metrics('withheld_detaches'))).toEqual(new Set(['unknown-volume']));
  });

  it('is unknown when handle and annotation differ', async () => {
    const metadata = { annotations: { 'nodekeeper.dev/volume-id': 'vol-0bb' } };
    expect(await detachedOf({ metadata })).toEqual([]);
  });

  it('is ignored when another driver attached it', async () => {
    expect(await detachedOf({ spec: { ...persistent, attacher: 'efs.csi.aws.com' } })).toEqual([]);
    expect(await withheld()).toEqual([]);
    expect(await volumeRows()).toEqual([]);
  });
});

describe('volumes to check', () => {
  it('are found by the sweep where the record of the pod was lost', async () => {
    await attached();
    await unhealthy();
    await podGoes();
    const store = podGcStore(fleet.tables);
    for (const row of await volumeRows()) await store.dropVolumes(row);
    expect(await passes(1_260)).toEqual([]);
    // Requested at 900 s, first seen unused at 920 s.
    expect(await passes(1_300)).toEqual([1_300]);
  });

  it('stay without a connection to EC2', async () => {
    await attached({ options: { hasCloud: false } });
    await unhealthy();
    await outOfService();
    await podGoes();
    expect(await passes(800)).toEqual([]);
    expect(await fleet.attachment('va')).toBeDefined();
  });
});

describe('the ledger', () => {
  const records = async () =>
    (await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 })).decisions
      .map(({ record }) => record)
      .filter(({ act }) => act.startsWith('Volume'));
  const told = async () => (await records()).map(({ act, reason }) => `${act} ${reason}`);

  it.each([false, true])(
    'has a detach once, whenever the process dies (last call happens: %s)',
    async (lastHappens) => {
      for (let atCall = 1; atCall <= 40; atCall += 1) {
        await attached();
        await unhealthy();
        await outOfService();
        await fleet.streams();
        await podGoes();
        fleet.at(20);
        const dying = dyingStore(fleet.tables, atCall, lastHappens);
        await fleet.collect(fleet.makeControllers(dying.items)).catch(() => {});
        const isAsked = fleet.cloud.calls().detachVolume > 0;
        if (isAsked) expect(await told()).toHaveLength(1);
        await passes(100);
        expect(await told()).toEqual([`VolumeDetached volume ${VOLUME}: node is out of service, force detach`]);
      }
    },
  );

  it('records why a volume stays, once per reason, and each record replays to the same outcome', async () => {
    await attached({ volume: { tags: {} } });
    await unhealthy();
    await fleet.streams();
    await podGoes();
    await passes(600);
    expect(await told()).toEqual([`VolumeKept volume ${VOLUME}: volume does not carry our tag`]);
    for (const record of await records()) expect(replay(record)).toMatchObject({ same: true, checked: true });
  });
});
