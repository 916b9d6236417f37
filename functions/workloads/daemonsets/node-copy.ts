/** Labels and taints of every Node, which a process keeps between syncs. */

import type { Clock } from '../../../shared/clock.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { type ObjectCopy, objectCopy } from '../../../shared/store/object-copy.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';
import { listObjects } from '../object-lists.ts';
import { type DaemonNode, daemonNodeOf } from './placement.rule.ts';

export type NodeCopy = ObjectCopy<DaemonNode>;

const RESOURCE = 'nodes';

export const nodeCopy = (dependencies: {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly objects: ObjectStore;
}): NodeCopy =>
  objectCopy({
    ...dependencies,
    resource: RESOURCE,
    listAll: () => listObjects(dependencies, RESOURCE, ''),
    keep: daemonNodeOf,
  });
