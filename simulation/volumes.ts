/**
 * Volumes of a simulated fleet: pods with one volume each, what their machines say to have mounted, and whoever
 * attaches and detaches on nodes in good health, as a CSI driver does.
 */
import type { MemoryCloud } from '../demo/ec2/cloud.ts';
import { CLUSTER_TAG } from '../shared/fleet/instances/cluster-tag.ts';
import { readyStatusOf } from '../shared/fleet/nodes/conditions.ts';
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

interface VolumeUsersOptions {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly cloud: MemoryCloud;
  readonly machine: (name: string) => TrueMachine | undefined;
  readonly log: (subject: string, text: string) => void;
}

export function runVolumes(options: VolumeUsersOptions): void {
  new VolumeUsers(options).start();
}

class VolumeUsers {
  readonly #options: VolumeUsersOptions;
  #disks: readonly Disk[] = [];
  #made = 0;

  constructor(options: VolumeUsersOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#attaching();
    void this.#looking();
  }

  #ask(request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> {
    return this.#options.send({ who: OPERATOR, ...request }, { isGone: () => false });
  }

  #isDone({ status }: EndpointAnswer): boolean {
    return status === 200 || status === 201;
  }

  #isHealthy(name: string): boolean {
    return (
      this.#options.machine(name)?.isOn === true &&
      readyStatusOf(this.#options.view.nodes.get(name)?.status?.conditions) === 'True'
    );
  }

  #wantedOn(name: string): Set<string> {
    return new Set([...this.#options.view.podsOf(name)].flatMap((pod) => volumeIdOfPod(pod) ?? []));
  }

  async #attach(): Promise<void> {
    const names = [...this.#options.view.nodes.keys()].filter(
      (name) =>
        this.#options.machine(name)?.instance === 'lives' &&
        this.#isHealthy(name) &&
        this.#disks.filter(({ nodeName }) => nodeName === name).length < VOLUMES_A_NODE_MAX,
    );
    const nodeName = names[Math.floor(this.#options.fraction() * names.length)];
    if (nodeName === undefined) return;
    this.#made += 1;
    const volumeId = `${VOLUME_ID_START}${String(this.#made).padStart(16, '0')}`;
    const disk: Disk = {
      volumeId,
      nodeName,
      instanceId: instanceIdOf({ name: nodeName }),
      attachment: `csi-${this.#made}`,
    };
    this.#options.cloud.putVolume({
      volumeId,
      zone: this.#options.machine(nodeName)!.zone,
      tags: { [CLUSTER_TAG]: CLUSTER },
    });
    this.#options.cloud.attachVolume(volumeId, { instanceId: disk.instanceId });
    const attached = await this.#ask({
      method: 'POST',
      path: ATTACHMENTS,
      body: {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'VolumeAttachment',
        metadata: { name: disk.attachment, annotations: { 'nodekeeper.dev/volume-id': volumeId } },
        spec: { attacher: 'ebs.csi.aws.com', nodeName, source: { persistentVolumeName: `pv-${this.#made}` } },
      },
    });
    if (!this.#isDone(attached)) return;
    this.#disks = [...this.#disks, disk];
    await this.#ask({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `writer-${this.#made}`, namespace: 'default' },
        spec: {
          nodeName,
          terminationGracePeriodSeconds: Math.floor(this.#options.fraction() * 20),
          containers: [{ name: 'main', image: 'registry.example/main:1' }],
          volumes: [{ name: 'data', awsElasticBlockStore: { volumeID: volumeId } }],
        },
      },
    });
  }

  /** A machine that is on mounts what its pods want and nothing else. */
  async #sayWhatIsMounted(name: string): Promise<void> {
    const node = this.#options.view.nodes.get(name);
    if (node === undefined || this.#options.machine(name)?.isOn !== true) return;
    const wanted = this.#wantedOn(name);
    const inUse = this.#disks.filter((disk) => disk.nodeName === name && wanted.has(disk.volumeId));
    const names = inUse.map(({ volumeId }) => inUseName(volumeId)).toSorted();
    const before = (node.status?.['volumesInUse'] as readonly string[] | undefined) ?? [];
    if (names.join() === before.join()) return;
    const { zone } = this.#options.machine(name)!;
    const isGone = (): boolean => this.#options.machine(name)?.isOn !== true;
    const said = this.#options.send(
      {
        who: name,
        method: 'PATCH',
        path: `/api/v1/nodes/${name}/status`,
        body: { status: { volumesInUse: names } },
        contentType: MERGE,
      },
      { zone, isGone },
    );
    await Promise.race([said, this.#options.time.sleep(LOOKS_EVERY_MS)]);
  }

  /** On a node in good health the driver detaches what is not mounted any more. */
  async #tidy(disk: Disk): Promise<void> {
    const { volumeId, nodeName, instanceId, attachment } = disk;
    const isAttached =
      (this.#options.cloud.world.volume(volumeId, this.#options.time.nowMs())?.attachments ?? []).length > 0;
    if (!isAttached) {
      this.#disks = this.#disks.filter((other) => other !== disk);
      return;
    }
    const said =
      (this.#options.view.nodes.get(nodeName)?.status?.['volumesInUse'] as readonly string[] | undefined) ?? [];
    if (!this.#isHealthy(nodeName) || this.#wantedOn(nodeName).has(volumeId) || said.includes(inUseName(volumeId)))
      return;
    this.#options.log(nodeName, `the driver detaches ${volumeId}`);
    this.#options.cloud.world.detachVolume(volumeId, instanceId, false);
    this.#disks = this.#disks.filter((other) => other !== disk);
    await this.#ask({ method: 'DELETE', path: `${ATTACHMENTS}/${attachment}` });
  }

  async #attaching(): Promise<void> {
    for (;;) {
      await this.#options.time.sleep(1_000 - Math.log(1 - this.#options.fraction()) * ATTACHES_MEAN_MS);
      await this.#attach();
    }
  }

  async #looking(): Promise<void> {
    for (;;) {
      await this.#options.time.sleep(LOOKS_EVERY_MS);
      for (const name of new Set(this.#disks.map(({ nodeName }) => nodeName))) await this.#sayWhatIsMounted(name);
      for (const disk of this.#disks) await this.#tidy(disk);
    }
  }
}
