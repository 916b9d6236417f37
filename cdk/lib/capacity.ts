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
}

const HEALTH_ITEM_BYTES = 250;
const READ_UNIT_BYTES = 4_096;
/** A node posts its status at least this often, changed or not. */
const STATUS_REPORT_SECONDS = 300;
/** An object's write is a transaction on object, log and head: three items at twice the price. */
const OBJECT_WRITE_UNITS = 6;
const TARGET_UTILIZATION_PERCENT = 70;
/** Scaling acts after minutes; below this a handful of requests would be throttled meanwhile. */
const UNITS_MIN = 5;
const FOLLOW_FACTOR = 10;
/** What a new table on demand takes without being warmed; asking for less is refused. */
const WARM_UNITS_MIN = { readUnits: 12_000, writeUnits: 4_000 };

/** What `nodes` healthy nodes ask of the tables: arithmetic for a starting point; autoscaling does the rest. */
export function expectedLoads(nodes: number, policy: Policy) {
  const statusPerSecond = nodes / STATUS_REPORT_SECONDS;
  return {
    health: {
      readUnits: (nodes * HEALTH_ITEM_BYTES) / READ_UNIT_BYTES / policy.nodeMonitorPeriodSeconds,
      writeUnits: nodes / policy.beatIntervalSeconds + statusPerSecond,
    },
    objects: { readUnits: statusPerSecond, writeUnits: statusPerSecond * OBJECT_WRITE_UNITS },
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
        writeCapacity: startUnits(load.writeUnits),
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
  const range = (expected: number) => {
    const start = startUnits(expected);
    return { minCapacity: Math.max(UNITS_MIN, Math.ceil(start / FOLLOW_FACTOR)), maxCapacity: start * FOLLOW_FACTOR };
  };
  const target = { targetUtilizationPercent: TARGET_UTILIZATION_PERCENT };
  table.autoScaleReadCapacity(range(load.readUnits)).scaleOnUtilization(target);
  table.autoScaleWriteCapacity(range(load.writeUnits)).scaleOnUtilization(target);
}
