import { Stack, Validations } from 'aws-cdk-lib';
import type { HandlerFunction } from './handler-function.ts';

/** EC2 knows no resources for its describing actions, so only the region bounds them. */
export function allowDescribeInstances(target: HandlerFunction<Record<string, string>>): void {
  target.allow(['ec2:DescribeInstances'], ['*'], { StringEquals: { 'ec2:Region': [Stack.of(target).region] } });
  Validations.of(target).acknowledge({
    id: 'AwsSolutions-IAM5[Resource::*]',
    reason: 'DescribeInstances has no resource-level permission; it is held to the region of the stack.',
  });
}
