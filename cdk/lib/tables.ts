import { type RemovalPolicy, Validations } from 'aws-cdk-lib';
import {
  AttributeType,
  type ITable,
  type PointInTimeRecoverySpecification,
  StreamViewType,
  Table,
  type TableProps,
} from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { TableName } from '../../shared/store/item-store.ts';
import { TABLE_FEATURES, TTL_ATTRIBUTE } from '../../shared/store/layout.ts';
import { billingOf, type Capacity, controlBilling, expectedLoads, expectedNodes, followLoad } from './capacity.ts';
import type { RestoredTables } from './restored-tables.ts';

export interface TablesProps {
  readonly capacity: Capacity;
  /** Its periods determine the expected load. */
  readonly policy: Policy;
  readonly removalPolicy: RemovalPolicy;
  readonly deletionProtection: boolean;
  /** Point-in-time recovery window. Days; 0: none; undefined: DynamoDB's maximum. */
  readonly pointInTimeRecoveryDays: number | undefined;
  /** Used instead of the tables of the stack, which stay. */
  readonly restored: RestoredTables | undefined;
}

function featuresOf(table: TableName): Pick<TableProps, 'stream' | 'timeToLiveAttribute'> {
  const { hasStream, hasExpiry } = TABLE_FEATURES[table];
  return {
    ...(hasStream && { stream: StreamViewType.NEW_AND_OLD_IMAGES }),
    ...(hasExpiry && { timeToLiveAttribute: TTL_ATTRIBUTE }),
  };
}

/**
 * The three tables. shared/store/layout.ts defines their keys, attributes, streams and expiry.
 * Plain AWS::DynamoDB::Table: one Region, and local mode reads the same resource.
 */
export class Tables extends Construct {
  /**
   * One small item per node. Streamed, but only first and suspect heartbeats pass the filter (object-stream's
   * manifest).
   */
  readonly health: ITable;
  /** Kubernetes objects, their change log and shard heads. */
  readonly objects: ITable;
  /** Slots, fences, limiters, zone states, queues. No function reacts to its changes, so it has no stream. */
  readonly control: ITable;

  constructor(scope: Construct, id: string, props: TablesProps) {
    super(scope, id);
    const shared: TableProps = {
      partitionKey: { name: 'pk', type: AttributeType.STRING },
      sortKey: { name: 'sk', type: AttributeType.STRING },
      pointInTimeRecoverySpecification: recoveryOf(props.pointInTimeRecoveryDays),
      removalPolicy: props.removalPolicy,
      deletionProtection: props.deletionProtection,
    };
    const { capacity } = props;
    const loads = expectedLoads(expectedNodes(capacity), props.policy);
    const propsOf = (table: TableName): TableProps => ({ ...shared, ...featuresOf(table) });

    const health = new Table(this, 'Health', { ...propsOf('health'), ...billingOf(capacity, loads.health) });
    const objects = new Table(this, 'Objects', { ...propsOf('objects'), ...billingOf(capacity, loads.objects) });
    const control = new Table(this, 'Control', { ...propsOf('control'), ...controlBilling(capacity) });

    if (props.pointInTimeRecoveryDays === 0) {
      for (const table of [health, objects, control]) {
        Validations.of(table).acknowledge({
          id: 'AwsSolutions-DDB3',
          reason: 'The deployer of this cluster disabled point-in-time recovery: pointInTimeRecoveryDays is 0.',
        });
      }
    }
    followLoad(health, capacity, loads.health);
    followLoad(objects, capacity, loads.objects);
    const { restored } = props;
    if (restored !== undefined) {
      // The stack's own tables stay in the template, unused: CloudFormation would delete those that were deployed with
      // removalPolicy destroy, and a later deployment without the restored tables would create empty ones.
      const found = (name: string, { tableArn, streamArn }: { tableArn: string; streamArn?: string }): ITable =>
        Table.fromTableAttributes(this, `Restored${name}`, {
          tableArn,
          ...(streamArn === undefined ? {} : { tableStreamArn: streamArn }),
        });
      this.health = found('Health', restored.health);
      this.objects = found('Objects', restored.objects);
      this.control = found('Control', restored.control);
      return;
    }
    // The library's own type does not keep exactOptionalPropertyTypes.
    this.health = health as ITable;
    this.objects = objects as ITable;
    this.control = control as ITable;
  }
}

function recoveryOf(days: number | undefined): PointInTimeRecoverySpecification {
  if (days === 0) return { pointInTimeRecoveryEnabled: false };
  return { pointInTimeRecoveryEnabled: true, ...(days === undefined ? {} : { recoveryPeriodInDays: days }) };
}
