/**
 * Volumes of a simulated fleet: pods with one volume each, what their machines say to have mounted, and whoever attaches and
 * detaches on nodes in good health, as a CSI driver does.
 */
import type { MemoryCloud } from '../shared/adapters/memory/cloud.ts';
import { CLUSTER_TAG } from '../shared/domain/cloud/cluster-tag.ts';
import { readyStatusOf } from '../shared/domain/nodes/conditions.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';
import type { TrueMachine } from './laws/law.ts';
import { instanceIdOf } from './simulated-instance.ts';
import type { VirtualTime } from './virtual-time.ts';
import { inUseName, VOLUME_ID_START, volumeIdOfPod } from './volume-names.ts';

const ATTACHES_MEAN_MS = 30_000;
const LOOKS_EVERY_MS = 5_000;
const VOLUMES_A_NODE_MAX = 2;
const CLUSTER = 'nodekeeper';
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const MERGE = 'application/merge-patch+json';

interface Disk {
  readonly volumeId: string;
  readonly nodeName: string;
  readonly instanceId: string;
  readonly attachment: string;
}

export function runVolumes(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly cloud: MemoryCloud;
  readonly machine: (name: string) => TrueMachine | undefined;
  readonly tell: (subject: string, text: string) => void;
}): void {
  const { time, fraction, send, view, cloud, machine, tell } = options;
  let disks: readonly Disk[] = [];
  let made = 0;
  const ask = (request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> =>
    send({ who: OPERATOR, ...request }, { isGone: () => false });
  const isDone = ({ status }: EndpointAnswer): boolean => status === 200 || status === 201;
  const isHealthy = (name: string): boolean =>
    machine(name)?.isOn === true && readyStatusOf(view.nodes.get(name)?.status?.conditions) === 'True';
  const wantedOn = (name: string): Set<string> =>
    new Set([...view.podsOf(name)].flatMap((pod) => volumeIdOfPod(pod) ?? []));

  async function attach(): Promise<void> {
    const names = [...view.nodes.keys()].filter(
      (name) =>
        machine(name)?.instance === 'lives' &&
        isHealthy(name) &&
        disks.filter(({ nodeName }) => nodeName === name).length < VOLUMES_A_NODE_MAX,
    );
    const nodeName = names[Math.floor(fraction() * names.length)];
    if (nodeName === undefined) return;
    made += 1;
    const volumeId = `${VOLUME_ID_START}${String(made).padStart(16, '0')}`;
    const disk: Disk = {
      volumeId,
      nodeName,
      instanceId: instanceIdOf({ name: nodeName }),
      attachment: `csi-${made}`,
    };
    cloud.putVolume({ volumeId, zone: machine(nodeName)!.zone, tags: { [CLUSTER_TAG]: CLUSTER } });
    cloud.attachVolume(volumeId, { instanceId: disk.instanceId });
    const attached = await ask({
      method: 'POST',
      path: ATTACHMENTS,
      body: {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'VolumeAttachment',
        metadata: { name: disk.attachment, annotations: { 'nodekeeper.dev/volume-id': volumeId } },
        spec: { attacher: 'ebs.csi.aws.com', nodeName, source: { persistentVolumeName: `pv-${made}` } },
      },
    });
    if (!isDone(attached)) return;
    disks = [...disks, disk];
    await ask({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `writer-${made}`, namespace: 'default' },
        spec: {
          nodeName,
          terminationGracePeriodSeconds: Math.floor(fraction() * 20),
          containers: [{ name: 'main', image: 'registry.example/main:1' }],
          volumes: [{ name: 'data', awsElasticBlockStore: { volumeID: volumeId } }],
        },
      },
    });
  }

  /** A machine that is on mounts what its pods want and nothing else. */
  async function sayWhatIsMounted(name: string): Promise<void> {
    const node = view.nodes.get(name);
    if (node === undefined || machine(name)?.isOn !== true) return;
    const wanted = wantedOn(name);
    const inUse = disks.filter((disk) => disk.nodeName === name && wanted.has(disk.volumeId));
    const names = inUse.map(({ volumeId }) => inUseName(volumeId)).toSorted();
    const before = (node.status?.['volumesInUse'] as readonly string[] | undefined) ?? [];
    if (names.join() === before.join()) return;
    const { zone } = machine(name)!;
    const isGone = (): boolean => machine(name)?.isOn !== true;
    const said = send(
      {
        who: name,
        method: 'PATCH',
        path: `/api/v1/nodes/${name}/status`,
        body: { status: { volumesInUse: names } },
        contentType: MERGE,
      },
      { zone, isGone },
    );
    await Promise.race([said, time.sleep(LOOKS_EVERY_MS)]);
  }

  /** On a node in good health the driver detaches what is not mounted any more. */
  async function tidy(disk: Disk): Promise<void> {
    const { volumeId, nodeName, instanceId, attachment } = disk;
    const isAttached = (cloud.world.volume(volumeId, time.nowMs())?.attachments ?? []).length > 0;
    if (!isAttached) {
      disks = disks.filter((other) => other !== disk);
      return;
    }
    const said = (view.nodes.get(nodeName)?.status?.['volumesInUse'] as readonly string[] | undefined) ?? [];
    if (!isHealthy(nodeName) || wantedOn(nodeName).has(volumeId) || said.includes(inUseName(volumeId))) return;
    tell(nodeName, `the driver detaches ${volumeId}`);
    cloud.world.detachVolume(volumeId, instanceId, false);
    disks = disks.filter((other) => other !== disk);
    await ask({ method: 'DELETE', path: `${ATTACHMENTS}/${attachment}` });
  }

  async function attaching(): Promise<void> {
    for (;;) {
      await time.sleep(1_000 - Math.log(1 - fraction()) * ATTACHES_MEAN_MS);
      await attach();
    }
  }

  async function looking(): Promise<void> {
    for (;;) {
      await time.sleep(LOOKS_EVERY_MS);
      for (const name of new Set(disks.map(({ nodeName }) => nodeName))) await sayWhatIsMounted(name);
      for (const disk of disks) await tidy(disk);
    }
  }
  void attaching();
  void looking();
}
