import { EventBus as CloudEventBus } from 'aws-cdk-lib/aws-events';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/** Bus of the cluster's own events (docs/events/), for whoever wants to hear them. Without rules it costs nothing but what is sent. */
export class EventBus extends Construct {
  /** A reference: CloudFormation names it. */
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

  /** Lets a function send here, and to no other bus. */
  allowSending(sender: HandlerFunction): void {
    sender.allow(['events:PutEvents'], [this.#arn]);
  }
}
