/** State changes of instances in the form in which EventBridge delivers them. */
import { randomUUID } from 'node:crypto';
import type { InstanceStateChange } from '../../demo/ec2/cloud-world.ts';

/** Source: EC2 User Guide, "State change events for Amazon EC2 instances". */
export function stateChangeEvent(
  change: InstanceStateChange,
  { region, accountId }: { readonly region: string; readonly accountId: string },
): Readonly<Record<string, unknown>> {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'EC2 Instance State-change Notification',
    source: 'aws.ec2',
    account: accountId,
    time: `${new Date(change.atMs).toISOString().slice(0, 19)}Z`,
    region,
    resources: [`arn:aws:ec2:${region}:${accountId}:instance/${change.instanceId}`],
    detail: { 'instance-id': change.instanceId, state: change.state },
  };
}
