import type { Cloud } from '../../shared/fleet/instances/cloud.ts';
import { type PodGcStore, podGcStore } from '../../shared/kinds/pods/work-list-store.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';

export interface PodGcPorts {
  /** EC2. Absent: no volume is detached. */
  readonly cloud?: Cloud;
  /**
   * Hex digest. Identifies a volume by the attachment name that the CSI attacher derives. Absent: such names are
   * ignored.
   */
  readonly sha256?: (text: string) => string;
}

export interface PodGcDependencies extends WorkDependencies, PodGcPorts {
  readonly podGc: PodGcStore;
}

export const podGcDependencies = (common: WorkDependencies, ports: PodGcPorts): PodGcDependencies => ({
  ...common,
  ...ports,
  podGc: podGcStore(common.items),
});
