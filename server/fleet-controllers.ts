/** The work of every function in one process. On AWS events start it; here it is called. */

import { type CloudNodeReport, processInstance, runCloudNode } from '../functions/cloud-node/work.ts';
import type { EvictionHold } from '../functions/evictor/rule.ts';
import {
  type EvictorReport,
  processQueuesBetweenTicks,
  runEvictor,
  runEvictorSlot,
} from '../functions/evictor/work.ts';
import type { TickingFunction } from '../functions/function-list.ts';
import { onHealthChange } from '../functions/health-stream/work.ts';
import { onMarkPart, type PartOutcome, type ReceivedPart } from '../functions/node-marker/work.ts';
import { type MonitorPorts, monitorDependencies } from '../functions/node-monitor/dependencies.ts';
import {
  onTickMessage,
  type TickMessageKind,
  type TickMessageOutcome,
} from '../functions/node-monitor/tick-message.ts';
import { type MonitorReport, runNodeMonitor } from '../functions/node-monitor/work.ts';
import { type ObjectStreamPorts, objectStreamDependencies } from '../functions/object-stream/dependencies.ts';
import { onObjectChange } from '../functions/object-stream/work.ts';
import { type PodGcPorts, podGcDependencies } from '../functions/pod-gc/dependencies.ts';
import { type PodGcReport, runPodGc } from '../functions/pod-gc/work.ts';
import { type SchedulerReport, scheduler } from '../functions/scheduler/work.ts';
import { type WorkloadPorts, workloadDependencies } from '../functions/workloads/dependencies.ts';
import { onWorkloadChange, runWorkloads, type WorkloadsReport } from '../functions/workloads/work.ts';
import { defined } from '../shared/defined.ts';
import { type WorkOptions, workDependencies } from '../shared/ticks/dependencies.ts';
import type { ChangesOutcome, ItemChangeRecord } from '../shared/ticks/item-change.ts';

/** What a tick of any controller reports. */
export interface TickReport {
  readonly kind: string;
  /** Why zones with waiting nodes had none tainted. */
  readonly holds?: ReadonlyMap<string, EvictionHold>;
}

export interface FleetControllers {
  /** The tick of each function that ticks. @throws TickFault when something could not be done; the next tick does it */
  readonly ticks: Readonly<Record<TickingFunction, (slot: number, budgetMs?: number) => Promise<TickReport>>>;
  /** @throws TickFault when something could not be done; the next tick does it. */
  tickNodeMonitor(slot: number, budgetMs?: number): Promise<MonitorReport>;
  /** A message of the tick queue of node-monitor. Faults are in the outcome. */
  onTickMessage(message: TickMessageKind, budgetMs?: number): Promise<TickMessageOutcome>;
  /** A message of the queue of node-marker. Faults are in the outcome. */
  onMarkPart(part: ReceivedPart): Promise<PartOutcome>;
  tickEvictor(slot: number, budgetMs?: number): Promise<EvictorReport>;
  /** A tick of evictor and the turns that come due before the next one; waits in between. */
  runEvictorSlot(slot: number, budgetMs?: number): Promise<EvictorReport>;
  /** The turns of one moment between ticks, for those who keep time themselves (`nextTokenAtMs` of the last report). */
  processQueuesBetweenTicks(): Promise<Extract<EvictorReport, { kind: 'ran' }>>;
  /** Asks EC2 about nodes that are not Ready; does nothing without a cloud. @throws TickFault as above */
  tickCloudNode(slot: number, budgetMs?: number): Promise<CloudNodeReport>;
  /** EventBridge reports a new state of an instance: EC2 is asked about its node at once. @throws TickFault */
  onInstanceChange(instanceId: string, budgetMs?: number): Promise<CloudNodeReport>;
  /** Pods that no agent finishes, volumes that no pod wants; slots of podGcPeriodSeconds. @throws TickFault as above */
  tickPodGc(slot: number, budgetMs?: number): Promise<PodGcReport>;
  /** A pass of the scheduler, if one is wanted or a waiting pod is due. @throws TickFault as above */
  tickScheduler(slot: number, budgetMs?: number): Promise<SchedulerReport>;
  /** Workloads that are due to be looked at, and the sweep over all of them. @throws TickFault as above */
  tickWorkloads(slot: number, budgetMs?: number): Promise<WorkloadsReport>;
  /** Changes of the `objects` table that workload controllers read. */
  onWorkloadRecords(records: readonly ItemChangeRecord[]): Promise<ChangesOutcome>;
  /** Changes of the `objects` table. */
  onObjectRecords(records: readonly ItemChangeRecord[]): Promise<ChangesOutcome>;
  /** Changes of the `health` table; those the stream's filter drops do nothing here either. */
  onHealthRecords(records: readonly ItemChangeRecord[]): Promise<ChangesOutcome>;
}

export interface ControllerOptions extends WorkOptions, MonitorPorts, ObjectStreamPorts, PodGcPorts, WorkloadPorts {}

export function fleetControllers(options: ControllerOptions): FleetControllers {
  const common = workDependencies(options);
  const withCloud = { ...common, ...defined({ cloud: options.cloud }) };
  const monitor = monitorDependencies(common, options);
  const objectStream = objectStreamDependencies(common, options);
  const podGc = podGcDependencies(common, options);
  const workloads = workloadDependencies(common, options);
  const { pass } = scheduler(common);
  const tickOf = (slot: number, budgetMs: number | undefined) =>
    budgetMs === undefined ? { slot } : { slot, budgetMs };
  const controllers: Omit<FleetControllers, 'ticks'> = {
    tickNodeMonitor: (slot, budgetMs) => runNodeMonitor(monitor, tickOf(slot, budgetMs)),
    onTickMessage: (message, budgetMs) => onTickMessage(monitor, message, budgetMs),
    onMarkPart: (part) => onMarkPart({ ...common, ...defined({ partQueue: options.partQueue }) }, part),
    tickEvictor: (slot, budgetMs) => runEvictor(common, tickOf(slot, budgetMs)),
    runEvictorSlot: (slot, budgetMs) =>
      runEvictorSlot(common, tickOf(slot, budgetMs), options.pause ?? (() => Promise.resolve())),
    processQueuesBetweenTicks: () => processQueuesBetweenTicks(common),
    tickCloudNode: (slot, budgetMs) => runCloudNode(withCloud, tickOf(slot, budgetMs)),
    onInstanceChange: (instanceId, budgetMs) => processInstance(withCloud, instanceId, budgetMs),
    tickPodGc: (slot, budgetMs) => runPodGc(podGc, tickOf(slot, budgetMs)),
    tickScheduler: (slot, budgetMs) => pass(tickOf(slot, budgetMs)),
    tickWorkloads: (slot, budgetMs) => runWorkloads(workloads, tickOf(slot, budgetMs)),
    onWorkloadRecords: (records) => onWorkloadChange(workloads, records),
    onObjectRecords: (records) => onObjectChange(objectStream, records),
    onHealthRecords: (records) => onHealthChange(common, records),
  };
  return {
    ...controllers,
    ticks: {
      'node-monitor': controllers.tickNodeMonitor,
      evictor: controllers.runEvictorSlot,
      'cloud-node': controllers.tickCloudNode,
      'pod-gc': controllers.tickPodGc,
      scheduler: controllers.tickScheduler,
      workloads: controllers.tickWorkloads,
    },
  };
}

export type { CloudNodeReport } from '../functions/cloud-node/work.ts';
export type { EvictorReport } from '../functions/evictor/work.ts';
export type { PartOutcome, ReceivedPart } from '../functions/node-marker/work.ts';
export type { TickMessageKind, TickMessageOutcome } from '../functions/node-monitor/tick-message.ts';
export type { MonitorReport } from '../functions/node-monitor/work.ts';
export type { PodGcReport } from '../functions/pod-gc/work.ts';
export type { SchedulerReport } from '../functions/scheduler/work.ts';
export type { ChangesOutcome, ItemChangeRecord } from '../shared/ticks/item-change.ts';
