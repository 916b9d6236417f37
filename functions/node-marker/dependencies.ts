import type { PartQueue } from '../../shared/fleet/mark-parts.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';

export interface MarkerDependencies extends WorkDependencies {
  /** Receives the parts that are left when the time is over. Absent: ticks of node-monitor mark those nodes. */
  readonly partQueue?: PartQueue;
}
