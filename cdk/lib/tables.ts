import type { RemovalPolicy } from 'aws-cdk-lib';
import { AttributeType, StreamViewType, Table, type TableProps } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import type { Policy } from '../../shared/domain/policy.ts';
import { billingOf, type Capacity, expectedLoads, followLoad } from './capacity.ts';

export interface TablesProps {
  readonly capacity: Capacity;
  /** Its periods say how much load to expect. */
  readonly policy: Policy;
  readonly removalPolicy: RemovalPolicy;
  readonly deletionProtection: boolean;
}

/** TTL attribute of `objects` and `control`. Epoch seconds; cleaning up only, never a clock. */
const TTL_ATTRIBUTE = 'ttl';

/**
 * The three tables. What their keys and attributes mean is decided in shared/store/layout.ts; this only says which
 * streams and expires. Plain AWS::DynamoDB::Table: one Region, and the local mode reads the same resource.
 */
export class Tables extends Construct {
  /** One small item a node. Streamed, but only first and suspect beats pass the filter (streams.ts). */
  readonly health: Table;
  /** Kubernetes objects, their change log and heads. */
  readonly objects: Table;
  /** Slots, fences, limiters, zone states, queues. Nothing reacts to it, so it has no stream. */
  readonly control: Table;

  constructor(scope: Construct, id: string, props: TablesProps) {
    super(scope, id);
    const shared: TableProps = {
      partitionKey: { name: 'pk', type: AttributeType.STRING },
      sortKey: { name: 'sk', type: AttributeType.STRING },
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      removalPolicy: props.removalPolicy,
      deletionProtection: props.deletionProtection,
    };
    const { capacity } = props;
    const loads = expectedLoads(capacity.kind === 'provisioned' ? capacity.nodes : 0, props.policy);
    const expiring = { timeToLiveAttribute: TTL_ATTRIBUTE };
    const streamed = { stream: StreamViewType.NEW_AND_OLD_IMAGES };

    this.health = new Table(this, 'Health', { ...shared, ...billingOf(capacity, loads.health), ...streamed });
    this.objects = new Table(this, 'Objects', {
      ...shared,
      ...billingOf(capacity, loads.objects),
      ...streamed,
      ...expiring,
    });
    this.control = new Table(this, 'Control', { ...shared, ...billingOf(capacity, loads.control), ...expiring });

    followLoad(this.health, capacity, loads.health);
    followLoad(this.objects, capacity, loads.objects);
    followLoad(this.control, capacity, loads.control);
  }
}
