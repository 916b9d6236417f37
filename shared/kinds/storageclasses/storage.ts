import type { KindStorage } from '../../api/kind-storage.ts';
import { withInitialObjects } from '../../api/object-storage.ts';
import { formatTime } from '../../kubernetes/time.ts';
import { LOCAL_CLASS, localClass } from './local-class.ts';
import { storageclasses } from './serve.ts';

export const storageClassStorages: readonly KindStorage[] = [
  [
    storageclasses,
    (descriptor, { plain, newObject, makesInitialObjects }) => {
      if (!makesInitialObjects) return plain(descriptor);
      return withInitialObjects(plain(descriptor), [LOCAL_CLASS], () => {
        const { nowMs, uuid } = newObject();
        const created = { uid: uuid(), creationTimestamp: formatTime(nowMs) };
        const metadata = { ...localClass.metadata, ...created };
        return storageclasses.prepareForCreate({ ...localClass, metadata }, { nowMs });
      });
    },
  ],
];
