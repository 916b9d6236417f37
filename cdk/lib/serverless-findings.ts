import { Validations } from 'aws-cdk-lib';
import { CfnStage } from 'aws-cdk-lib/aws-apigatewayv2';
import { CfnRule } from 'aws-cdk-lib/aws-events';
import { CfnEventInvokeConfig, CfnEventSourceMapping, CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { CfnSubscription } from 'aws-cdk-lib/aws-sns';
import { CfnQueue } from 'aws-cdk-lib/aws-sqs';
import type { IConstruct } from 'constructs';

/**
 * Acknowledges the findings of cdk-nag's Serverless rules that this design accepts, each with its reason. Must be
 * called when all resources below `cluster` exist. A queue or an event source that lacks its own protection is still
 * reported.
 */
export function acknowledgeServerlessFindings(cluster: IConstruct): void {
  for (const construct of cluster.node.findAll()) {
    for (const [rule, reason] of acceptedFor(construct)) {
      Validations.of(construct).acknowledge({ id: `Serverless-${rule}`, reason });
    }
  }
}

function acceptedFor(construct: IConstruct): readonly (readonly [rule: string, reason: string])[] {
  if (construct instanceof CfnFunction) {
    return [
      [
        'LambdaTracing',
        'A trace per heartbeat would cost more than the heartbeat. Decisions are recorded and explained.',
      ],
      [
        'LambdaDLQ',
        'It receives failed asynchronous calls only, which are hints here: the next tick or sweep repeats their work.',
      ],
    ];
  }
  if (construct instanceof CfnEventInvokeConfig) {
    return [
      ['LambdaAsyncFailureDestination', 'Asynchronous calls are hints: the next sweep or tick repeats their work.'],
    ];
  }
  if (construct instanceof CfnEventSourceMapping && construct.destinationConfig === undefined) {
    return [
      [
        'LambdaEventSourceMappingDestination',
        'The source is a queue with a redrive policy, which keeps failed messages.',
      ],
    ];
  }
  if (construct instanceof CfnQueue && construct.redrivePolicy === undefined) {
    return [['SQSRedrivePolicy', 'This is the dead-letter queue itself; an alarm fires when it is not empty.']];
  }
  if (construct instanceof CfnRule) {
    return [['EventBusDLQ', 'The event only makes a function faster than its next tick, which finds the same change.']];
  }
  if (construct instanceof CfnStage) {
    return [['APIGWAccessLogging', 'A log line per heartbeat would cost more than the heartbeat itself does.']];
  }
  if (construct instanceof CfnSubscription) {
    return [
      ['SNSRedrivePolicy', 'It is the e-mail address of a person. CloudWatch shows the state of the alarm as well.'],
    ];
  }
  return [];
}
