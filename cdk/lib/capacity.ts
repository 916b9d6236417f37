import { BillingMode, type Table, type TableProps } from 'aws-cdk-lib/aws-dynamodb';
import type { Policy } from '../../shared/domain/policy.ts';

/**
 * How the tables are paid. `onDemand` by use; with `warmForNodes` room is made beforehand for the beats of so many nodes,
 * which pays once and can later be raised, never lowered: a new table takes 4,000 writes a second without. `provisioned` by the hour with autoscaling, cheaper from about 29 % use
 * on, and beats are as steady as load gets. `nodes` is the size the cluster is expected to have: capacity starts
 * there and follows the load from a tenth of it to tenfold.
 */
export type Capacity =
  | { readonly kind: 'onDemand'; readonly warmForNodes?: number }
  | { readonly kind: 'provisioned'; readonly nodes: number };

/** Nodes that room is made for; 0 where nothing is said. */
export const expectedNodes = (capacity: Capacity | undefined): number =>
  (capacity?.kind === 'provisioned' ? capacity.nodes : capacity?.warmForNodes) ?? 0;

/** Units a second of a table under the expected load. */
export interface ExpectedLoad {
  readonly readUnits: number;
  readonly writeUnits: number;
  /**
   * Write units of a table that is quiet until something happens to many nodes: kept ready in any case, and followed up to at
   * most. Absent: the load is steady, a tenth and tenfold of it will do.
   */
  readonly burst?: { readonly readyUnits: number; readonly mostUnits: number };
}

const HEALTH_ITEM_BYTES = 250;
const READ_UNIT_BYTES = 4_096;
/** A node posts its status at least this often, changed or not; the Node is read for it. */
const STATUS_REPORT_SECONDS = 300;
/** A post that says nothing new goes to the node's row in health alone, but for one a day (docs/decisions/0008). */
const WHOLE_REPORT_SECONDS = 86_400;
/** A Node's write is a transaction on object, log and head: 4, 4 and 1 units with a Node of 3 to 4 KB, at twice the price. */
const NODE_WRITE_UNITS = 18;
/** DynamoDB lends what was not used in this time: enough is kept ready for this share of all Nodes to be written at once. */
const LENT_SECONDS = 300;
const READY_SHARE = 0.05;
/** Capacity follows up to where every Node is written within this time. */
const ALL_WRITTEN_SECONDS = 60;
const TARGET_UTILIZATION_PERCENT = 70;
/** Scaling acts after minutes; below this a handful of requests would be throttled meanwhile. */
const UNITS_MIN = 5;
const FOLLOW_FACTOR = 10;
/** What a new table on demand takes without being warmed; asking for less is refused. */
const WARM_UNITS_MIN = { readUnits: 12_000, writeUnits: 4_000 };

/** What `nodes` healthy nodes ask of the tables: arithmetic for a starting point; autoscaling does the rest. */
export function expectedLoads(nodes: number, policy: Policy) {
  const statusPerSecond = nodes / STATUS_REPORT_SECONDS;
  const allUnits = nodes * NODE_WRITE_UNITS;
  return {
    health: {
      readUnits: (nodes * HEALTH_ITEM_BYTES) / READ_UNIT_BYTES / policy.nodeMonitorPeriodSeconds,
      writeUnits: nodes / policy.beatIntervalSeconds + statusPerSecond,
    },
    objects: {
      readUnits: statusPerSecond,
      writeUnits: allUnits / WHOLE_REPORT_SECONDS,
      burst: { readyUnits: (allUnits * READY_SHARE) / LENT_SECONDS, mostUnits: allUnits / ALL_WRITTEN_SECONDS },
    },
    control: { readUnits: UNITS_MIN, writeUnits: UNITS_MIN },
  } satisfies Record<string, ExpectedLoad>;
}

const startUnits = (expected: number): number =>
  Math.max(UNITS_MIN, Math.ceil((expected * 100) / TARGET_UTILIZATION_PERCENT));

type BillingProps = Pick<TableProps, 'billingMode' | 'readCapacity' | 'writeCapacity' | 'warmThroughput'>;

export function billingOf(capacity: Capacity, load: ExpectedLoad): BillingProps {
  return capacity.kind === 'onDemand'
    ? { billingMode: BillingMode.PAY_PER_REQUEST, ...warmOf(capacity.warmForNodes, load) }
    : {
        billingMode: BillingMode.PROVISIONED,
        readCapacity: startUnits(load.readUnits),
        writeCapacity: Math.max(startUnits(load.writeUnits), Math.ceil(load.burst?.readyUnits ?? 0)),
      };
}

function warmOf(nodes: number | undefined, load: ExpectedLoad): Pick<TableProps, 'warmThroughput'> {
  if (nodes === undefined) return {};
  const readUnitsPerSecond = Math.max(WARM_UNITS_MIN.readUnits, Math.ceil(load.readUnits));
  const writeUnitsPerSecond = Math.max(WARM_UNITS_MIN.writeUnits, Math.ceil(load.writeUnits));
  return { warmThroughput: { readUnitsPerSecond, writeUnitsPerSecond } };
}

/** Lets a provisioned table follow its load; nothing to do on demand. */
export function followLoad(table: Table, capacity: Capacity, load: ExpectedLoad): void {
  if (capacity.kind === 'onDemand') return;
  const range = (expected: number, { readyUnits = 0, mostUnits = 0 }: Partial<ExpectedLoad['burst']> = {}) => {
    const start = startUnits(expected);
    return {
      minCapacity: Math.max(UNITS_MIN, Math.ceil(start / FOLLOW_FACTOR), Math.ceil(readyUnits)),
      maxCapacity: Math.max(start * FOLLOW_FACTOR, Math.ceil(mostUnits)),
    };
  };
  const target = { targetUtilizationPercent: TARGET_UTILIZATION_PERCENT };
  table.autoScaleReadCapacity(range(load.readUnits)).scaleOnUtilization(target);
  table.autoScaleWriteCapacity(range(load.writeUnits, load.burst)).scaleOnUtilization(target);
}
