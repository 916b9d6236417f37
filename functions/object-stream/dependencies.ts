import type { EventBus } from '../../shared/events/cluster-event.ts';
import { type PodGcStore, podGcStore } from '../../shared/kinds/pods/work-list-store.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import type { Waker } from '../../shared/ticks/tick.ts';
import { type CidrAllocator, cidrAllocator } from './node-cidrs.ts';

export interface ObjectStreamPorts {
  /** Receives cluster events. Absent: none are published. */
  readonly eventBus?: EventBus;
  /** Starts the functions that have work. Absent: they are started from outside. */
  readonly waker?: Waker;
}

export interface ObjectStreamDependencies extends WorkDependencies, ObjectStreamPorts {
  readonly cidrs: CidrAllocator;
  readonly podGc: PodGcStore;
}

export const objectStreamDependencies = (
  common: WorkDependencies,
  ports: ObjectStreamPorts,
): ObjectStreamDependencies => ({ ...common, ...ports, cidrs: cidrAllocator(common), podGc: podGcStore(common.items) });
