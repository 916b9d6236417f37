import { ArnFormat, Stack, Validations } from 'aws-cdk-lib';
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import type { HandlerFunction } from './handler-function.ts';

/**
 * Subnets of a VPC that the functions use for their calls (docs/network.md). The endpoints of the cluster stay public.
 * With constructs: `subnetIds: vpc.selectSubnets({ … }).subnetIds`.
 */
export interface ClusterNetwork {
  /** Private subnets of one VPC, in two or more zones. They need a route to the AWS services and to `Endpoint`. */
  readonly subnetIds: string[];
  /** Security groups that allow HTTPS to the outside. Nothing connects to the functions. */
  readonly securityGroupIds: string[];
  /**
   * Whether functions also use IPv6. The subnets must have IPv4 and IPv6.
   * @default false
   */
  readonly ipv6?: boolean;
}

/**
 * What Lambda does with the role of a function in a VPC; the function itself does not need it.
 * Source: AWS Lambda Developer Guide, chapter "configuration-vpc".
 */
const INTERFACE_ACTIONS = [
  'ec2:AssignPrivateIpAddresses',
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'ec2:UnassignPrivateIpAddresses',
];

/** Connects a function to the subnets. */
export function connectToNetwork(target: HandlerFunction, { subnetIds, securityGroupIds, ipv6 }: ClusterNetwork): void {
  const resource = target.lambda.node.defaultChild as CfnFunction;
  resource.vpcConfig = { subnetIds, securityGroupIds, ipv6AllowedForDualStack: ipv6 ?? false };
  target.allow(INTERFACE_ACTIONS, ['*']);
  // Lambda calls EC2 with the role before it runs the function. The code of the function is refused the same calls:
  // only these carry the ARN of a function. Source: the page above, "Security best practices".
  const anyFunction = Stack.of(target).formatArn({
    service: 'lambda',
    resource: 'function',
    resourceName: '*',
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });
  target.deny(INTERFACE_ACTIONS, ['*'], { ArnLike: { 'lambda:SourceFunctionArn': [anyFunction] } });
  Validations.of(target).acknowledge({
    id: 'AwsSolutions-IAM5[Resource::*]',
    reason: 'Lambda creates interfaces in subnets of the deployer; describing them cannot be limited to a resource.',
  });
}
