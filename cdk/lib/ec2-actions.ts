import { Stack, Validations } from 'aws-cdk-lib';
import { CLUSTER_TAG } from '../../shared/fleet/instances/cluster-tag.ts';
import type { HandlerFunction } from './handler-function.ts';

/** The Describe actions of EC2 have no resource-level permissions, so the statement is limited by region. */
export function allowDescribeInstances(target: HandlerFunction): void {
  target.allow(['ec2:DescribeInstances'], ['*'], { StringEquals: { 'ec2:Region': [Stack.of(target).region] } });
  Validations.of(target).acknowledge({
    id: 'AwsSolutions-IAM5[Resource::*]',
    reason: 'DescribeInstances has no resource-level permission; it is limited to the Region of the stack.',
  });
}

/** Volumes with the tag of this cluster, any instance: EC2 checks both resources, and only volumes carry our tag. */
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
      reason: 'The tag in the statement selects the volumes of the cluster; instances are replaced all the time.',
    });
  }
}
