/** What the API asks this machine to do for volumes. */
import type { KubePersistentVolume } from '../../shared/kinds/types.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { answeredWith } from './kube-answer.ts';

export interface VolumeWork {
  readonly id: string;
  /** The volume to create, without its path. Absent: `remove` is the name of the one to remove. */
  readonly provision?: KubePersistentVolume;
  readonly remove?: string;
}

const LIST_KIND = 'NodeVolumeWorkList';
/** A name of a volume that the API makes, as the name of a directory. */
const DIRECTORY_NAME = /^pvc-[a-z0-9-]{1,63}$/;

export const volumesPath = (nodeName: string): string =>
  `/apis/nodekeeper.dev/v1alpha1/nodevolumes/${encodeURIComponent(nodeName)}`;

/** Undefined: not the answer of the API. Malformed works are left out: no other directory is ever made or removed. */
export function volumeWorks(answer: KubeAnswer): readonly VolumeWork[] | undefined {
  if (answer.kind !== 'answered' || !answeredWith(answer, 200) || !isJsonObject(answer.body)) return undefined;
  const { kind, items } = answer.body;
  if (kind !== LIST_KIND || !Array.isArray(items)) return undefined;
  return items.filter(isJsonObject).flatMap(({ id, provision, remove }): VolumeWork[] => {
    if (typeof id !== 'string') return [];
    if (typeof remove === 'string') return DIRECTORY_NAME.test(remove) ? [{ id, remove }] : [];
    const volume = provision as KubePersistentVolume | undefined;
    return DIRECTORY_NAME.test(volume?.metadata?.name ?? '') ? [{ id, provision: volume! }] : [];
  });
}

/** Bytes that the volume asks for; 0 if it says nothing. */
export function requestedBytes({ spec }: KubePersistentVolume): number {
  const parsed = parseQuantity(String(spec?.capacity?.['storage'] ?? ''));
  return parsed.kind === 'parsed' ? Number(parsed.quantity.nanos / 1_000_000_000n) : 0;
}

/** A claim for a block device is for a driver: a directory is none. */
export const isDirectory = ({ spec }: KubePersistentVolume): boolean =>
  (spec?.volumeMode ?? 'Filesystem') === 'Filesystem';
