import { Stack } from 'aws-cdk-lib';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';

/**
 * A topic with one e-mail address. AWS asks the address to confirm; until then no notification is sent. Only CloudWatch
 * alarms of this account may publish, over TLS.
 */
export class AlarmEmail extends Construct {
  readonly topicArn: string;

  constructor(scope: Construct, id: string, props: { readonly address: string }) {
    super(scope, id);
    const topic = new Topic(this, 'Topic', { displayName: 'Nodekeeper alarms', enforceSSL: true });
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } },
      }),
    );
    topic.addSubscription(new EmailSubscription(props.address));
    this.topicArn = topic.topicArn;
  }
}
