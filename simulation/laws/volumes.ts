/**
 * Volumes: none is detached from a machine that may still write to it, unless a person declared the machine out of
 * service or its time is over; and in calm no unwanted one stays on a node that is not healthy.
 */
import type { MemoryCloud } from '../../demo/ec2/cloud.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { objectPartition } from '../../shared/store/layout.ts';
import { OBJECT, unpackText } from '../../shared/store/object-record.ts';
import type { Mark } from '../coverage.ts';
import type { TimedChange } from '../recent-changes.ts';
import { VOLUME_ID_START, volumeIdOfPod } from '../volume-names.ts';
import { effectMs, type Law, type LawContext, seconds } from './law.ts';
import { storedObject } from './stored-object.ts';
import { readyOf } from './truth.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
/** Passes of pod-gc until an unwanted volume is asked for, and what else lies in between. */
const PASSES = 4;
const ASKED_WITHIN_MS = 30_000;

interface StoredNode {
  ready: ConditionStatus | undefined;
  readySinceMs: number;
  isOut: boolean;
  outSinceMs: number;
  inUse: string;
  inUseSinceMs: number;
}

interface Use {
  readonly nodeName: string;
  readonly podPath: string;
  /** Since when no pod wants it. */
  unwantedSinceMs: number | undefined;
}

export interface VolumeLaw extends Law {
  learn(changes: readonly TimedChange[]): void;
  /** EC2 is asked to detach. */
  onDetach(volumeId: string): void;
}

export function volumesAreKept(context: LawContext, cloud: MemoryCloud, hit: (mark: Mark) => void): VolumeLaw {
  return new VolumesAreKept(context, cloud, hit);
}

class VolumesAreKept implements VolumeLaw {
  readonly name = 'volumes';
  readonly #context: LawContext;
  readonly #cloud: MemoryCloud;
  readonly #hit: (mark: Mark) => void;
  readonly #nodes = new Map<string, StoredNode>();
  readonly #uses = new Map<string, Use>();

  constructor(context: LawContext, cloud: MemoryCloud, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#cloud = cloud;
    this.#hit = hit;
  }

  learn(changes: readonly TimedChange[]): void {
    for (const change of changes) {
      if (change.key.pk.startsWith(objectPartition('nodes'))) this.#changeNode(change);
      else if (change.key.pk.startsWith(objectPartition('pods'))) this.#changePod(change);
    }
  }

  onDetach(volumeId: string): void {
    const use = this.#uses.get(volumeId);
    if (use === undefined) return;
    const now = this.#context.nowMs();
    const { unwantedSinceMs } = use;
    if (unwantedSinceMs === undefined) {
      this.#fail(use, volumeId, 'detached while its pod is there');
      return;
    }
    const node = this.#nodes.get(use.nodeName);
    const slackMs = effectMs(this.#context);
    const isOut = node !== undefined && (node.isOut || now - node.outSinceMs <= slackMs);
    if (node !== undefined && node.ready === 'True' && now - node.readySinceMs > slackMs && !isOut) {
      this.#fail(use, volumeId, `detached from a node that is Ready since ${seconds(now - node.readySinceMs)}`);
      return;
    }
    // No machine reports the mounts of a deleted Node.
    const isMounted = node === undefined || (node.inUse.includes(volumeId) && now - node.inUseSinceMs > slackMs);
    const timeoutMs = this.#context.least((policy) => policy.forceDetachTimeoutSeconds) * 1_000;
    const isOver = now - unwantedSinceMs > timeoutMs - slackMs - this.#context.clockSlackMs(unwantedSinceMs);
    if (isMounted && !isOut && !isOver) {
      this.#fail(use, volumeId, `detached while mounted, ${seconds(now - unwantedSinceMs)} after its pod went`);
      return;
    }
    if (node === undefined) this.#hit('volume:nodeGone');
    else this.#hit(!isMounted ? 'volume:unmounted' : isOut ? 'volume:out-of-service' : 'volume:timeout');
  }

  onMoment(): void {
    const calmMs = this.#context.calmSinceMs();
    if (calmMs === undefined) return;
    const now = this.#context.nowMs();
    const timeoutMs = this.#context.most((policy) => policy.forceDetachTimeoutSeconds) * 1_000;
    // A timeout waits for our own view to be clear: the gate looks back on two beats, and then a grace.
    const clearMs =
      this.#context.most((policy) => policy.nodeMonitorGracePeriodSeconds + 2 * policy.beatIntervalSeconds) * 1_000;
    const passesMs = PASSES * this.#context.most((policy) => policy.podGcPeriodSeconds) * 1_000;
    for (const [volumeId, use] of this.#uses) {
      const node = this.#nodes.get(use.nodeName);
      if (use.unwantedSinceMs === undefined || node === undefined || (node.ready === 'True' && !node.isOut)) continue;
      const sinceMs = Math.max(calmMs, use.unwantedSinceMs, node.readySinceMs, node.outSinceMs, node.inUseSinceMs);
      const isTimed = node.inUse.includes(volumeId) && !node.isOut;
      const dueMs = sinceMs + passesMs + ASKED_WITHIN_MS + (isTimed ? timeoutMs + clearMs : 0);
      if (now <= dueMs + this.#context.clockSlackMs(use.unwantedSinceMs)) continue;
      const held = this.#cloud.world.volume(volumeId, now)?.attachments.find(({ state }) => state === 'attached');
      if (held === undefined) continue;
      this.#fail(use, volumeId, `unused for ${seconds(now - use.unwantedSinceMs)}, and it is still attached`);
    }
  }

  #fail(use: Use, volumeId: string, why: string): void {
    this.#context.fail({
      law: 'volumes',
      subjects: [use.nodeName, use.podPath],
      message: `${volumeId} of ${use.nodeName}: ${why}`,
    });
  }

  #changeNode({ key, newImage, atMs }: TimedChange): void {
    if (newImage === undefined) {
      this.#nodes.delete(key.sk);
      return;
    }
    const node = storedObject(newImage) as KubeNode;
    const ready = readyOf(node);
    const isOut = (node.spec?.taints ?? []).some((taint) => taint.key === OUT_OF_SERVICE);
    const inUse = ((node.status?.['volumesInUse'] as readonly string[] | undefined) ?? []).join();
    const known = this.#nodes.get(key.sk);
    if (known === undefined) {
      this.#nodes.set(key.sk, { ready, readySinceMs: atMs, isOut, outSinceMs: atMs, inUse, inUseSinceMs: atMs });
      return;
    }
    if (known.ready !== ready) Object.assign(known, { ready, readySinceMs: atMs });
    if (known.isOut !== isOut) Object.assign(known, { isOut, outSinceMs: atMs });
    if (known.inUse !== inUse) Object.assign(known, { inUse, inUseSinceMs: atMs });
  }

  #changePod({ key, newImage, oldImage, atMs }: TimedChange): void {
    const text = unpackText(OBJECT.object.of((newImage ?? oldImage)!));
    if (!text.includes(VOLUME_ID_START)) return;
    const pod: KubeObject = storedObject((newImage ?? oldImage)!);
    const volumeId = volumeIdOfPod(pod);
    if (volumeId === undefined) return;
    const phase = pod.status?.['phase'];
    const isWanted = newImage !== undefined && phase !== 'Succeeded' && phase !== 'Failed';
    const nodeName = (pod.spec?.['nodeName'] as string | undefined) ?? '';
    const use = this.#uses.get(volumeId) ?? { nodeName, podPath: key.sk, unwantedSinceMs: undefined };
    this.#uses.set(volumeId, use);
    use.unwantedSinceMs = isWanted ? undefined : (use.unwantedSinceMs ?? atMs);
  }
}
