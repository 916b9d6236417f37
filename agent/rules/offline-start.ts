/** What a machine has for a start without a network, as after a power cut: its pods, and their images. */
import { offlineStopSeconds } from '../../shared/kinds/pods/offline-stop.ts';
import { pullPolicyOf } from '../../shared/kinds/pods/spec-defaults.ts';
import type { KubePod } from '../../shared/kinds/types.ts';

/** The pods that the agent kept on disk. */
export type RememberedReading =
  /** By the configuration. */
  | { readonly kind: 'off' }
  | { readonly kind: 'forbidden'; readonly why: string }
  | {
      readonly kind: 'read';
      readonly pods: readonly KubePod[];
      /** Why the state, or the newest one of two, cannot be used. */
      readonly refusals: readonly string[];
      /** False: nothing was written yet, or nothing can be used. */
      readonly isAnyUsable: boolean;
    };

export type ImagesReading =
  | { readonly kind: 'failed'; readonly why: string }
  /** `here` is empty where none is needed: for a runtime without images, and without pods. */
  | { readonly kind: 'read'; readonly here: ReadonlySet<string> };

export interface OfflineReading {
  readonly remembered: RememberedReading;
  readonly staticPods: readonly KubePod[];
  /** Why static pods, or some of them, cannot be read. */
  readonly staticFaults: readonly string[];
  readonly images: ImagesReading;
}

interface NeededImage {
  readonly image: string;
  /** Its registry is asked at each start of a container. */
  readonly isAlwaysPulled: boolean;
  /** namespace/name */
  readonly pods: readonly string[];
}

export interface OfflineImage extends Pick<NeededImage, 'image' | 'pods'> {
  readonly state: 'here' | 'missing' | 'alwaysPulled';
}

const nameOf = ({ metadata: { namespace = 'default', name = '' } }: KubePod): string => `${namespace}/${name}`;

/** An agent does not start such a pod before the API has answered. */
const waitsForApi = (pod: KubePod): boolean => offlineStopSeconds(pod) !== undefined;

const rememberedPodsOf = ({ remembered }: Pick<OfflineReading, 'remembered'>): readonly KubePod[] =>
  remembered.kind === 'read' ? remembered.pods : [];

/** Names of the pods that need the API for their start, whether or not their images are here. */
export const podsThatWait = (reading: Pick<OfflineReading, 'remembered'>): readonly string[] =>
  rememberedPodsOf(reading).filter(waitsForApi).map(nameOf);

type Pods = Pick<OfflineReading, 'remembered' | 'staticPods'>;

/** The images of all pods that start without the API, by name. Init containers run again after each boot. */
export function neededImages(reading: Pods): readonly NeededImage[] {
  const pods = [...rememberedPodsOf(reading).filter((pod) => !waitsForApi(pod)), ...reading.staticPods];
  const needed = new Map<string, NeededImage>();
  for (const pod of pods) {
    for (const container of [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]) {
      const { image = '' } = container;
      const isAlwaysPulled = pullPolicyOf(container) === 'Always';
      const key = `${image} ${isAlwaysPulled}`;
      const users = new Set([...(needed.get(key)?.pods ?? []), nameOf(pod)]);
      needed.set(key, { image, isAlwaysPulled, pods: [...users].toSorted() });
    }
  }
  return [...needed.values()].toSorted((one, other) => one.image.localeCompare(other.image));
}

/** @param here the images that this machine has */
export const offlineImages = (reading: Pods, here: ReadonlySet<string>): readonly OfflineImage[] =>
  neededImages(reading).map(({ image, isAlwaysPulled, pods }) => ({
    image,
    state: isAlwaysPulled ? 'alwaysPulled' : here.has(image) ? 'here' : 'missing',
    pods,
  }));
