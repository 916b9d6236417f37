/**
 * What pod-gc must never do, over random histories with an EC2 in memory. Machines fail, disappear and return as
 * others. Pods and volumes are created and deleted. Ticks are killed half-way or run twice, and EC2 requests fail. Each
 * effect is checked from outside, at its moment. A seed that fails replays by its number.
 */
import { describe, expect, it } from 'vitest';
import type { MemoryCloud } from '../../demo/ec2/cloud.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { type ControlledFleet, controlledFleet } from '../support/controlled-fleet.ts';
import { dyingStore } from '../support/failing-store.ts';
import { randomFrom } from '../support/seeded.ts';

const SEEDS = 60;
const PASSES = 90;
const PERIOD_SECONDS = 20;
const TIMEOUT_MS = 360_000;
const NODES = ['n-0', 'n-1', 'n-2'] as const;
const OUT_OF_SERVICE: Taint = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' };
const uniqueName = (volumeId: string): string => `kubernetes.io/csi/ebs.csi.aws.com^${volumeId}`;

interface Seen {
  detaches: number;
  forced: number;
  orphans: number;
  stuck: number;
  closed: number;
}

class History {
  readonly fleet: ControlledFleet;
  readonly cloud: MemoryCloud;
  readonly random: () => number;
  readonly seen: Seen;
  readonly violations: string[] = [];
  /** When a pod on the node last used a volume. */
  readonly wantedAtMs = new Map<string, number>();
  /** The instance of a node when it last had a Node object. */
  readonly instanceOf = new Map<string, string>();
  instances = 0;
  pods = 0;

  constructor(seed: number, seen: Seen) {
    this.random = randomFrom(seed);
    this.seen = seen;
    this.fleet = controlledFleet({ policy: { tickGate: 'off' }, hasCloud: true });
    this.cloud = this.fleet.cloud;
    const { detachVolume } = this.cloud;
    Object.assign(this.cloud, {
      detachVolume: (request: Parameters<typeof detachVolume>[0]) => {
        this.judgeDetach(request);
        return detachVolume(request);
      },
    });
  }

  object(resource: string, key: string): KubeObject | undefined {
    const item = this.fleet.tables
      .items('objects')
      .find(({ pk, sk }) => String(pk).startsWith(`o#${resource}#`) && sk === key);
    return item === undefined ? undefined : objectOf(item);
  }

  podsOn(nodeName: string): KubeObject[] {
    return this.fleet.tables
      .items('objects')
      .filter(({ pk }) => String(pk).startsWith('o#pods#'))
      .map((item) => objectOf(item))
      .filter((pod) => pod.spec?.['nodeName'] === nodeName);
  }

  wants(nodeName: string): boolean {
    return this.podsOn(nodeName).some(
      (pod) => pod.spec?.['volumes'] !== undefined && pod.status?.['phase'] === 'Running',
    );
  }

  health(node: KubeNode | undefined) {
    return {
      ready: node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True',
      out: (node?.spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE.key),
    };
  }

  judgeDetach({ volumeId, instanceId, force }: { volumeId: string; instanceId: string; force: boolean }): void {
    const nowMs = this.fleet.nowMs();
    const nodeName = volumeId.replace('vol-', 'n-');
    const node = this.object('nodes', nodeName) as KubeNode | undefined;
    const { ready, out } = this.health(node);
    const runs = this.cloud.world.instance(instanceId, nowMs)?.state === 'running';
    const inUse = (node?.status?.['volumesInUse'] as string[] | undefined) ?? [];
    const mounted = node === undefined || inUse.includes(uniqueName(volumeId));
    const timedOut = nowMs - (this.wantedAtMs.get(nodeName) ?? 0) > TIMEOUT_MS;
    const wrong = (why: string) => this.violations.push(`${this.fleet.seconds()} s: ${volumeId} detached ${why}`);
    this.seen.detaches += 1;
    if (force) this.seen.forced += 1;
    if (instanceId !== this.instanceOf.get(nodeName)) wrong('from an instance that is not its node');
    if (this.wants(nodeName)) wrong('while a pod wants it');
    if (ready && !out) wrong('from a healthy node');
    if (mounted && !out && !timedOut) wrong('while it is mounted');
    if (force && runs && !out) wrong('by force from a running instance');
    const told = (node?.status?.['volumesAttached'] as { name: string }[] | undefined) ?? [];
    if (told.some(({ name }) => name === uniqueName(volumeId))) wrong('before it was reported not attached');
  }

  /** Every write of a pod by pod-gc, at its moment. */
  judged(items: ItemStore): ItemStore {
    return {
      ...items,
      transact: (writes) => {
        for (const { key } of writes) {
          if (key.table !== 'objects' || !key.pk.startsWith('o#pods#')) continue;
          const pod = this.object('pods', key.sk);
          if (pod === undefined) continue;
          const nodeName = pod.spec?.['nodeName'] as string | undefined;
          const node = nodeName === undefined ? undefined : (this.object('nodes', nodeName) as KubeNode | undefined);
          const { ready, out } = this.health(node);
          const terminating = pod.metadata.deletionTimestamp !== undefined;
          const orphan = nodeName !== undefined && node === undefined;
          if (orphan) this.seen.orphans += 1;
          else this.seen.stuck += 1;
          if (!orphan && !(terminating && (nodeName === undefined || (out && !ready)))) this.suspects.push(key.sk);
        }
        return items.transact(writes).then((outcome) => {
          if (outcome.kind === 'written') {
            for (const sk of this.suspects)
              this.violations.push(`${this.fleet.seconds()} s: ${sk} detached from its node`);
          }
          this.suspects.length = 0;
          return outcome;
        });
      },
    };
  }
  readonly suspects: string[] = [];

  async register(nodeName: string, isNewInstance: boolean): Promise<void> {
    let instanceId = this.instanceOf.get(nodeName);
    if (instanceId === undefined || isNewInstance) {
      this.instances += 1;
      instanceId = `i-${String(this.instances).padStart(8, '0')}`;
      const launchedAtMs = this.fleet.nowMs();
      this.cloud.put({ instanceId, zone: 'eu-central-1a', instanceType: 'm7g.large', launchedAtMs });
    }
    this.instanceOf.set(nodeName, instanceId);
    await this.fleet.register(nodeName, { providerID: `aws:///eu-central-1a/${instanceId}` });
    if (this.random() < 0.8) await this.fleet.post(nodeName);
  }

  /** The volume of this node, attached and mounted, with the objects that say so. */
  async attach(nodeName: string): Promise<void> {
    const volumeId = nodeName.replace('n-', 'vol-');
    const instanceId = this.instanceOf.get(nodeName)!;
    if (this.cloud.world.volume(volumeId, this.fleet.nowMs()) === undefined) {
      this.cloud.putVolume({ volumeId, zone: 'eu-central-1a', tags: { 'nodekeeper.dev/cluster': 'test' } });
    }
    if ((this.cloud.world.volume(volumeId, this.fleet.nowMs())?.attachments.length ?? 0) > 0) return;
    this.cloud.attachVolume(volumeId, { instanceId, mounted: true });
    await this.change(nodeName, (node) => ({
      ...node,
      status: {
        ...node.status,
        volumesAttached: [{ name: uniqueName(volumeId), devicePath: '' }],
        volumesInUse: [uniqueName(volumeId)],
      },
    }));
    if ((await this.fleet.attachment(`va-${nodeName}`)) !== undefined) return;
    const csi = { driver: 'ebs.csi.aws.com', volumeHandle: volumeId };
    await this.fleet.attach(`va-${nodeName}`, nodeName, { spec: { source: { inlineVolumeSpec: { csi } } } });
  }

  async change(nodeName: string, change: (node: KubeNode) => KubeNode): Promise<void> {
    if (this.object('nodes', nodeName) !== undefined) await this.fleet.changeNode(nodeName, change);
  }

  async befall(nodeName: string): Promise<void> {
    const { fleet, cloud, random } = this;
    const exists = this.object('nodes', nodeName) !== undefined;
    const pods = this.podsOn(nodeName).map(({ metadata }) => metadata.name!);
    const pod = pods[Math.floor(random() * pods.length)];
    const instanceId = this.instanceOf.get(nodeName)!;
    const dice = random();
    if (dice < 0.1) return exists ? fleet.post(nodeName, 'Unknown') : undefined;
    if (dice < 0.17) return exists ? fleet.post(nodeName, 'True') : undefined;
    if (dice < 0.24) {
      return this.change(nodeName, (node) => ({
        ...node,
        spec: { ...node.spec, taints: random() < 0.6 ? [OUT_OF_SERVICE] : [] },
      }));
    }
    if (dice < 0.3) return exists ? fleet.removeNode(nodeName) : this.register(nodeName, random() < 0.5);
    if (dice < 0.36) return exists ? this.attach(nodeName) : undefined;
    if (dice < 0.48) {
      this.pods += 1;
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
      return fleet.addPod(`p-${this.pods}`, nodeName, random() < 0.7 ? { volumes } : {});
    }
    if (dice < 0.58) return pod === undefined ? undefined : fleet.endPod(pod);
    if (dice < 0.76) return pod === undefined ? undefined : fleet.removePod(pod);
    if (dice < 0.8) {
      return this.change(nodeName, ({ status: { volumesInUse: _, ...status } = {}, ...node }) => ({ ...node, status }));
    }
    if (dice < 0.84) cloud.stop(instanceId);
    else if (dice < 0.88) cloud.start(instanceId);
    else if (dice < 0.91) cloud.fail(random() < 0.5 ? 'Throttling' : null);
    else cloud.fail(null);
  }

  note(): void {
    for (const name of NODES) if (this.wants(name)) this.wantedAtMs.set(name, this.fleet.nowMs());
  }

  async pass(): Promise<void> {
    const { fleet, random } = this;
    const slot = Math.floor(fleet.nowMs() / (PERIOD_SECONDS * 1_000));
    const items = this.judged(fleet.tables);
    const dies = random() < 0.2;
    const processes = [
      fleet.makeControllers(dies ? dyingStore(items, 1 + Math.floor(random() * 25), random() < 0.5).items : items),
    ];
    if (random() < 0.2) processes.push(fleet.makeControllers(items));
    await Promise.all(processes.map((each, index) => each.tickPodGc(slot + index).catch(() => 'dead')));
    await fleet.streams();
    if (random() < 0.1) await fleet.controllers.onObjectRecords(fleet.tables.changes('objects').slice(-40));
  }

  async play(): Promise<void> {
    for (const name of NODES) {
      await this.register(name, true);
      await this.attach(name);
    }
    for (let pass = 0; pass < PASSES; pass += 1) {
      this.fleet.at(pass * PERIOD_SECONDS + 7);
      for (const name of NODES) {
        // Most ticks leave a node unchanged: quarantines and timeouts expire.
        if (this.random() < 0.25) await this.befall(name);
        this.note();
        if (this.random() < 0.8) await this.fleet.streams();
      }
      this.note();
      this.fleet.at(pass * PERIOD_SECONDS + PERIOD_SECONDS);
      await this.fleet.streams();
      this.note();
      await this.pass();
    }
    for (const name of NODES) if (this.object('volumeattachments', `va-${name}`) === undefined) this.seen.closed += 1;
  }
}

describe('pod-gc under random faults', () => {
  const seen: Seen = { detaches: 0, forced: 0, orphans: 0, stuck: 0, closed: 0 };

  it.each(Array.from({ length: SEEDS }, (_, seed) => seed))(
    'deletes no pod of a node that exists and detaches no volume of a machine that may write, in history %i',
    async (seed) => {
      const history = new History(seed, seen);
      await history.play();
      expect(history.violations).toEqual([]);
    },
  );

  it('had effects to check', () => {
    expect(seen.detaches).toBeGreaterThan(SEEDS / 2);
    expect(seen.forced).toBeGreaterThan(SEEDS / 6);
    expect(seen.orphans).toBeGreaterThan(SEEDS);
    expect(seen.stuck).toBeGreaterThan(SEEDS / 2);
    expect(seen.closed).toBeGreaterThan(SEEDS / 3);
  });
});
