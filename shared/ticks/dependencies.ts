/** What every controller needs. Built once per process: by a function's compose.ts, a scenario or a simulation. */

import type { Probe } from '../../functions/node-monitor/probe.ts';
import { type ReturnWatch, returnWatch } from '../../functions/node-monitor/return-watch.ts';
import { type SilenceWatch, silenceWatch } from '../../functions/node-monitor/silence-watch.ts';
import type { TickQueue } from '../../functions/node-monitor/tick-queue.ts';
import { type NodeCopy, nodeCopy } from '../../functions/workloads/daemonsets/node-copy.ts';
import { type KnownSelectors, knownSelectors } from '../../functions/workloads/pods/known-selectors.ts';
import type { Clock, RandomSource } from '../clock.ts';
import { type Ledger, ledgerOver } from '../decisions/ledger.ts';
import type { EventBus } from '../events/event-bus.ts';
import { type EvictionTimerStore, evictionTimerStore } from '../fleet/evictions/timer-store.ts';
import type { Cloud } from '../fleet/instances/cloud.ts';
import type { PartQueue } from '../fleet/marks/part-queue.ts';
import { type ReportLimit, reportLimit } from '../fleet/nodes/report-limit.ts';
import type { Policy } from '../fleet/policy.ts';
import { type FleetStore, fleetStore } from '../fleet/zones/fleet-store.ts';
import { clusterObjects } from '../kinds/cluster-objects.ts';
import { type PodGcStore, podGcStore } from '../kinds/pods/collection/work-list-store.ts';
import { type NamespacePolicies, namespacePolicies } from '../kinds/quotas/namespace-policies.ts';
import type { Log, Meter } from '../observability/log.ts';
import type { ItemStore } from '../store/item-store.ts';
import type { ObjectStore } from '../store/object-store.ts';
import type { Waker } from './waker.ts';

export interface ControllerOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly policy: Policy;
  readonly log: Log;
  readonly meter: Meter;
  /** Sends node-monitor's own heartbeats. Absent: the safety gate does not check the heartbeat path. */
  readonly probe?: Probe;
  /** EC2, for cloud-node and for volumes. Absent: both do nothing. */
  readonly cloud?: Cloud;
  /** Receives cluster events. Absent: none are published. */
  readonly eventBus?: EventBus;
  /** Returns and resets the capacity units that the tables reported as consumed. Absent: no cost metric is emitted. */
  readonly takeUnits?: () => { readonly readUnits: number; readonly writeUnits: number };
  /**
   * Hex digest. Identifies a volume by the attachment name that the CSI attacher derives. Absent: such names are
   * ignored.
   */
  readonly sha256?: (text: string) => string;
  /** Receives the message of the next tick of node-monitor. Absent: ticks are started from outside. */
  readonly tickQueue?: TickQueue;
  /** Receives the parts of a mass failure for node-marker. Absent: ticks of node-monitor mark every node themselves. */
  readonly partQueue?: PartQueue;
  /** Starts the functions that have work. Absent: they are started from outside. */
  readonly waker?: Waker;
  /** Certificates in PEM that clients in pods trust. Absent: none are published. */
  readonly apiAuthorities?: () => string;
  /** Waits between attempts at a contended commit. Milliseconds. Absent: attempts follow at once. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
}

export interface ControllerDependencies extends ControllerOptions {
  readonly objects: ObjectStore;
  /** ResourceQuotas and LimitRanges of namespaces. */
  readonly namespacePolicies: NamespacePolicies;
  readonly fleet: FleetStore;
  readonly timers: EvictionTimerStore;
  readonly podGc: PodGcStore;
  readonly ledger: Ledger;
  readonly budgets: KnownSelectors;
  readonly services: KnownSelectors;
  /** Labels and taints of every Node, for DaemonSets. */
  readonly daemonNodes: NodeCopy;
  /** Silences of live machines that node-monitor has seen. */
  readonly silences: SilenceWatch;
  /** Nodes that return from a planned silence. */
  readonly returns: ReturnWatch;
  /** Bounds the reports of report-unwritable.ts. */
  readonly unwritableReports: ReportLimit;
}

export function controllerDependencies(options: ControllerOptions): ControllerDependencies {
  const objects = clusterObjects(options);
  return {
    ...options,
    objects,
    namespacePolicies: namespacePolicies(objects, options.clock),
    fleet: fleetStore(options.items),
    timers: evictionTimerStore(options.items),
    podGc: podGcStore(options.items),
    budgets: knownSelectors(objects, options.clock, 'poddisruptionbudgets'),
    services: knownSelectors(objects, options.clock, 'services'),
    daemonNodes: nodeCopy({ ...options, objects }),
    ledger: ledgerOver(options.items, options.policy),
    silences: silenceWatch(),
    returns: returnWatch(),
    unwritableReports: reportLimit(),
  };
}
