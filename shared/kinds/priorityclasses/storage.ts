import type { KindStorage } from '../../api/kind-storage.ts';
import { withInitialObjects } from '../../api/object-storage.ts';
import { formatTime } from '../../kubernetes/time.ts';
import { systemPriorityClasses } from './defaults.ts';
import { priorityclasses } from './serve.ts';

export const priorityClassStorages: readonly KindStorage[] = [
  [
    priorityclasses,
    (descriptor, { plain, newObject, makesInitialObjects }) => {
      if (!makesInitialObjects) return plain(descriptor);
      const classes = new Map(systemPriorityClasses().map((object) => [object.metadata.name ?? '', object]));
      return withInitialObjects(plain(descriptor), [...classes.keys()], (name) => {
        const { nowMs, uuid } = newObject();
        const object = classes.get(name)!;
        const created = { uid: uuid(), creationTimestamp: formatTime(nowMs) };
        return { ...object, metadata: { ...object.metadata, ...created } };
      });
    },
  ],
];
