import { DEFAULT_CLASS, LOCAL_PROVISIONER } from '../persistentvolumes/annotations.ts';
import type { KubeStorageClass } from '../types.ts';

/** The class of directories on machines that every cluster has from the start, and that claims without a class get. */
export const LOCAL_CLASS = 'local';

export const localClass: KubeStorageClass = Object.freeze({
  metadata: { name: LOCAL_CLASS, annotations: { [DEFAULT_CLASS]: 'true' } },
  provisioner: LOCAL_PROVISIONER,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
});

/** The stored classes. The class `local` is stored when the API reads it first, and exists before. */
export const withLocalClass = (stored: readonly KubeStorageClass[]): readonly KubeStorageClass[] =>
  stored.some(({ metadata }) => metadata.name === LOCAL_CLASS) ? stored : [...stored, localClass];
