import { Stack } from 'aws-cdk-lib';
import { CfnPolicy, CfnRole } from 'aws-cdk-lib/aws-iam';
import { CfnSchedule } from 'aws-cdk-lib/aws-scheduler';
import type { IConstruct } from 'constructs';

/**
 * Creates each schedule after the policies of its role. A schedule references the role only, so CloudFormation may
 * create it before the role may do anything, and its first calls fail into the dead-letter queue.
 * Source: CloudFormation User Guide, "DependsOn attribute".
 */
export function scheduleAfterPolicies(cluster: IConstruct): void {
  const stack = Stack.of(cluster);
  const constructs = cluster.node.findAll();
  const roles = constructs.filter((construct) => construct instanceof CfnRole);
  const policies = constructs.filter((construct) => construct instanceof CfnPolicy);
  /** Names of the roles that a property references. */
  const rolesIn = (property: unknown): readonly string[] => {
    const text = JSON.stringify(stack.resolve(property));
    return roles.map((role) => stack.getLogicalId(role)).filter((id) => text.includes(`"${id}"`));
  };
  for (const schedule of constructs.filter((construct) => construct instanceof CfnSchedule)) {
    const callers = rolesIn(schedule.target);
    for (const policy of policies) {
      if (rolesIn(policy.roles).some((role) => callers.includes(role))) schedule.addResourceDependency(policy);
    }
  }
}
