import type { Clock, RandomSource } from '../clock.ts';
import { type Ledger, ledgerOver } from '../decisions/ledger.ts';
import { type FleetStore, fleetStore } from '../fleet/fleet-store.ts';
import { type ReportLimit, reportLimit } from '../fleet/nodes/report-limit.ts';
import type { Policy } from '../fleet/policy.ts';
import { clusterObjects } from '../kinds/resources.ts';
import type { Log, Meter } from '../observability/log.ts';
import type { ItemStore } from '../store/item-store.ts';
import type { ObjectStore } from '../store/object-store.ts';

export interface WorkOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly policy: Policy;
  readonly log: Log;
  readonly meter: Meter;
  /** Waits between attempts at a contended commit. Milliseconds. Absent: attempts follow at once. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
}

/** What the work of every function needs. A function that needs more has a `dependencies.ts` of its own. */
export interface WorkDependencies extends WorkOptions {
  readonly objects: ObjectStore;
  readonly fleet: FleetStore;
  readonly ledger: Ledger;
  /** Bounds the reports of report-unwritable.ts. */
  readonly unwritableReports: ReportLimit;
}

/** Once per process: the ledger and the limit of reports have a memory. */
export const workDependencies = (options: WorkOptions): WorkDependencies => ({
  ...options,
  objects: clusterObjects(options),
  fleet: fleetStore(options.items),
  ledger: ledgerOver(options.items, options.policy),
  unwritableReports: reportLimit(),
});
