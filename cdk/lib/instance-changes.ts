import { Duration } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/** States that something may follow from for a node that is not Ready; the others wait for the next tick. */
const STATES = ['shutting-down', 'stopped', 'terminated'];
/** After this the tick has long asked by itself. */
const EVENT_AGE_MAX_SECONDS = 60;
const RETRIES_MAX = 1;

/**
 * Changes of instances, told to a function when they happen. Only to be faster than the next tick: delivery is best effort,
 * so nothing is kept of an event that could not be delivered.
 */
export class InstanceChanges extends Construct {
  constructor(scope: Construct, id: string, props: { readonly target: HandlerFunction<Record<string, string>> }) {
    super(scope, id);
    new Rule(this, 'Rule', {
      description: 'EC2 instances that stop or end',
      eventPattern: {
        source: ['aws.ec2'],
        detailType: ['EC2 Instance State-change Notification'],
        detail: { state: STATES },
      },
      targets: [
        new LambdaFunction(props.target.lambda, {
          maxEventAge: Duration.seconds(EVENT_AGE_MAX_SECONDS),
          retryAttempts: RETRIES_MAX,
        }),
      ],
    });
  }
}
