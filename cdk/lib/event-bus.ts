import { EventBus as CloudEventBus } from 'aws-cdk-lib/aws-events';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/**
 * Event bus of the cluster events (docs/events/), for subscribers outside the cluster. Only sent events are charged.
 */
export class EventBus extends Construct {
  /** A reference: CloudFormation generates the name. */
  readonly busName: string;
  readonly #arn: string;

  constructor(scope: Construct, id: string, props: { readonly clusterId: string }) {
    super(scope, id);
    const bus = new CloudEventBus(this, 'Bus', {
      eventBusName: `${props.clusterId}-events`,
      description: 'Nodekeeper: nodes, pods, zones and the gate',
    });
    this.busName = bus.eventBusName;
    this.#arn = bus.eventBusArn;
  }

  /** Allows a function to send to this bus only. */
  allowSending(sender: HandlerFunction): void {
    sender.allow(['events:PutEvents'], [this.#arn]);
  }
}
