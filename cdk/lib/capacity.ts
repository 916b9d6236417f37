import { BillingMode, type Table, type TableProps } from 'aws-cdk-lib/aws-dynamodb';
import type { Policy } from '../../shared/fleet/policy.ts';

/** Billing mode of the tables. */
export class Capacity {
  /**
   * Pay per request.
   *
   * @param warmForNodes warms the tables for twice the heartbeats of that many nodes. Warming is charged once and can
   * be raised later, never lowered. Without it a new table accepts 4,000 writes per second.
   */
  static onDemand(warmForNodes?: number): Capacity {
    return new Capacity(false, warmForNodes);
  }

  /**
   * Pay per hour, with autoscaling. Cheaper from about 29 % utilisation, and heartbeats are a steady load. The table
   * `control` stays on demand.
   *
   * @param nodes expected size of the cluster: capacity starts there and follows the load, from a tenth to tenfold
   */
  static provisioned(nodes: number): Capacity {
    return new Capacity(true, nodes);
  }

  readonly isProvisioned: boolean;
  /** Number of nodes to prepare capacity for. */
  readonly nodes: number | undefined;

  private constructor(isProvisioned: boolean, nodes: number | undefined) {
    this.isProvisioned = isProvisioned;
    this.nodes = nodes;
  }
}

/** Number of nodes to prepare capacity for; 0 when not configured. */
export const expectedNodes = (capacity: Capacity | undefined): number => capacity?.nodes ?? 0;

/** Size of the fleet where none is configured. */
const NODES_DEFAULT = 1_000;

/** Number of nodes that the request limits and reservations are for. */
export const fleetSize = (props: { readonly nodesMax?: number; readonly capacity?: Capacity }): number =>
  props.nodesMax ?? props.capacity?.nodes ?? NODES_DEFAULT;

/** Capacity units per second of a table under the expected load. */
export interface ExpectedLoad {
  readonly readUnits: number;
  readonly writeUnits: number;
  /**
   * For a table that is quiet until many nodes change at once. Write units: `readyUnits` is the minimum capacity,
   * `mostUnits` the maximum. Absent: the load is steady, and capacity is a tenth to tenfold of it.
   */
  readonly burst?: { readonly readyUnits: number; readonly mostUnits: number };
}

const HEALTH_ITEM_BYTES = 250;
const READ_UNIT_BYTES = 4_096;
/** A node posts its status at least this often, changed or not. The Node is read for each post. */
const STATUS_REPORT_SECONDS = 300;
/** A post without changes only updates the node's row in health, except for one post per day (docs/decisions/0008). */
const WHOLE_REPORT_SECONDS = 86_400;
/**
 * Writing a Node is a transaction on object, log and head: 4, 4 and 1 units for a Node of 3 to 4 KB, at twice the
 * price.
 */
const NODE_WRITE_UNITS = 18;
/** DynamoDB keeps unused capacity for this time. It suffices to write READY_SHARE of all Nodes at once. */
const LENT_SECONDS = 300;
const READY_SHARE = 0.05;
/** The maximum capacity writes every Node within this time. */
const ALL_WRITTEN_SECONDS = 60;
const TARGET_UTILIZATION_PERCENT = 70;
/** Autoscaling reacts within minutes. Below this minimum a few requests would be throttled meanwhile. */
const UNITS_MIN = 5;
const FOLLOW_FACTOR = 10;
/**
 * Warm write units per unit of load. A partition has as many shards as the hash of their keys assigns to it: the
 * fullest one gets more than its share (docs/decisions/0024-health-shards.md). A fleet that recovers sends its
 * heartbeats at once.
 */
const WARM_SPREAD_FACTOR = 2;
/** Warm throughput of a new on-demand table. DynamoDB refuses a smaller value. */
const WARM_UNITS_MIN = { readUnits: 12_000, writeUnits: 4_000 };

/** Load of `nodes` healthy nodes on the tables: the starting point for autoscaling. */
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
  } satisfies Record<string, ExpectedLoad>;
}

/** Sums of fractions are not exact: 14.000000000000002 units are 14. */
const wholeUnits = (units: number): number => Math.ceil(Number(units.toFixed(6)));

const startUnits = (expected: number): number =>
  Math.max(UNITS_MIN, wholeUnits((expected * 100) / TARGET_UTILIZATION_PERCENT));

type BillingProps = Pick<TableProps, 'billingMode' | 'readCapacity' | 'writeCapacity' | 'warmThroughput'>;

export function billingOf(capacity: Capacity, load: ExpectedLoad): BillingProps {
  return capacity.isProvisioned
    ? {
        billingMode: BillingMode.PROVISIONED,
        readCapacity: startUnits(load.readUnits),
        writeCapacity: Math.max(startUnits(load.writeUnits), Math.ceil(load.burst?.readyUnits ?? 0)),
      }
    : { billingMode: BillingMode.PAY_PER_REQUEST, ...warmOf(capacity.nodes, load) };
}

/**
 * `control` is on demand in each mode. It is nearly idle while nodes are healthy, and a zone of 10,000 dead nodes reads
 * 49 units per second at once. DynamoDB keeps unused provisioned capacity for five minutes, and autoscaling reacts only
 * after minutes: ticks would be throttled exactly while nodes fail, and the safety gate would close.
 * Source: DynamoDB Developer Guide, "Burst and adaptive capacity", "Managing throughput capacity with auto scaling".
 */
export const controlBilling = (capacity: Capacity): BillingProps => ({
  billingMode: BillingMode.PAY_PER_REQUEST,
  ...(capacity.isProvisioned ? {} : warmOf(capacity.nodes, { readUnits: 0, writeUnits: 0 })),
});

function warmOf(nodes: number | undefined, load: ExpectedLoad): Pick<TableProps, 'warmThroughput'> {
  if (nodes === undefined) return {};
  const readUnitsPerSecond = Math.max(WARM_UNITS_MIN.readUnits, Math.ceil(load.readUnits));
  const writeUnitsPerSecond = Math.max(WARM_UNITS_MIN.writeUnits, Math.ceil(load.writeUnits * WARM_SPREAD_FACTOR));
  return { warmThroughput: { readUnitsPerSecond, writeUnitsPerSecond } };
}

/** Enables autoscaling of a provisioned table. Does nothing on demand. */
export function followLoad(table: Table, capacity: Capacity, load: ExpectedLoad): void {
  if (!capacity.isProvisioned) return;
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
