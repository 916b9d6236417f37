import type { Cloud } from '../../shared/fleet/instances/cloud.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';

export interface CloudNodeDependencies extends WorkDependencies {
  /** EC2. Absent: nothing is done. */
  readonly cloud?: Cloud;
}
