import type { KindStorage } from '../../api/kind-storage.ts';
import { podUseWrites } from '../../fleet/nodes/node-use.ts';
import { pods } from './serve.ts';
import { copyWrites } from './site-copy.ts';

export const podStorages: readonly KindStorage[] = [
  // The scheduler binds no pod to a node if pods were added to it since it read them.
  [
    pods,
    (descriptor, { plain }) =>
      plain(descriptor, { together: (write, along) => [...podUseWrites(write), ...copyWrites(write, along)] }),
  ],
];
