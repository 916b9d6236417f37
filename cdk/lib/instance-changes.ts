import { Duration } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/** By then a tick has asked EC2 several times. */
const EVENT_AGE_MAX_SECONDS = 60;
const RETRIES_MAX = 1;

export interface InstanceChangesProps {
  readonly target: HandlerFunction;
  /** States of an instance that the function reacts to. */
  readonly states: readonly string[];
}

/**
 * Calls a function when an EC2 instance enters one of the states. It only makes the function faster than its next tick:
 * delivery is best effort, and an event that cannot be delivered is dropped.
 */
export class InstanceChanges extends Construct {
  constructor(scope: Construct, id: string, props: InstanceChangesProps) {
    super(scope, id);
    new Rule(this, 'Rule', {
      description: 'EC2 instances that stop or terminate',
      eventPattern: {
        source: ['aws.ec2'],
        detailType: ['EC2 Instance State-change Notification'],
        detail: { state: [...props.states] },
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
