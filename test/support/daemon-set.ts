/** What a pod brings that a DaemonSet made. Source: pkg/controller/daemon/util/daemonset_util.go. */

import {
  TAINT_DISK_PRESSURE,
  TAINT_MEMORY_PRESSURE,
  TAINT_NOT_READY,
  TAINT_PID_PRESSURE,
  TAINT_UNREACHABLE,
  TAINT_UNSCHEDULABLE,
} from '../../shared/fleet/nodes/taint.ts';
import type { TaintEffect, Toleration } from '../../shared/kubernetes/kubernetes.ts';

const exists = (key: string, effect: TaintEffect): Toleration => ({ key, operator: 'Exists', effect });

/** The tolerations of one that is not on the host's network. */
export const DAEMON_SET_TOLERATIONS: readonly Toleration[] = [
  exists(TAINT_NOT_READY, 'NoExecute'),
  exists(TAINT_UNREACHABLE, 'NoExecute'),
  exists(TAINT_DISK_PRESSURE, 'NoSchedule'),
  exists(TAINT_MEMORY_PRESSURE, 'NoSchedule'),
  exists(TAINT_PID_PRESSURE, 'NoSchedule'),
  exists(TAINT_UNSCHEDULABLE, 'NoSchedule'),
];
