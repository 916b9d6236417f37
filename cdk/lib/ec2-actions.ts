import { Stack, Validations } from 'aws-cdk-lib';
import { CLUSTER_TAG } from '../../shared/domain/cloud/cluster-tag.ts';
import type { HandlerFunction } from './handler-function.ts';

/** The Describe actions of EC2 have no resource-level permissions, so the statement is limited by region. */
export function allowDescribeInstances(target: HandlerFunction): void {
  target.allow(['ec2:DescribeInstances'], ['*'], { StringEquals: { 'ec2:Region': [Stack.of(target).region] } });
  Validations.of(target).acknowledge({
    id: 'AwsSolutions-IAM5[Resource::*]',
    reason: 'DescribeInstances has no resource-level permission; it is held to the region of the stack.',
  });
}

/** Of this cluster by their tag; of any instance, since EC2 judges by both and only volumes are ours to mark. */
export function allowDetachVolumes(target: HandlerFunction, clusterId: string): void {
  const stack = Stack.of(target);
  target.allow(['ec2:DescribeVolumes'], ['*'], { StringEquals: { 'ec2:Region': [stack.region] } });
  const arnOf = (resource: string): string => stack.formatArn({ service: 'ec2', resource, resourceName: '*' });
  target.allow(['ec2:DetachVolume'], [arnOf('volume')], {
    StringEquals: { [`aws:ResourceTag/${CLUSTER_TAG}`]: [clusterId] },
  });
  target.allow(['ec2:DetachVolume'], [arnOf('instance')]);
  for (const resource of ['volume', 'instance']) {
    Validations.of(target).acknowledge({
      id: `AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:${resource}/*]`,
      reason: 'Which volumes a cluster has is said by their tag, which the statement asks for; instances come and go.',
    });
  }
}
