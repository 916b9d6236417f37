import type { RemovalPolicy } from 'aws-cdk-lib';
import { AttributeType, BillingMode, StreamViewType, Table, type TableProps } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';

export interface TablesProps {
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
      billingMode: BillingMode.PAY_PER_REQUEST,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      removalPolicy: props.removalPolicy,
      deletionProtection: props.deletionProtection,
    };
    this.health = new Table(this, 'Health', { ...shared, stream: StreamViewType.NEW_AND_OLD_IMAGES });
    this.objects = new Table(this, 'Objects', {
      ...shared,
      stream: StreamViewType.NEW_AND_OLD_IMAGES,
      timeToLiveAttribute: TTL_ATTRIBUTE,
    });
    this.control = new Table(this, 'Control', { ...shared, timeToLiveAttribute: TTL_ATTRIBUTE });
  }
}
