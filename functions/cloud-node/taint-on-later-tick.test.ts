import { expect, it } from 'vitest';
import { type ControlledFleet, controlledFleet } from '../../test/support/controlled-fleet.ts';

const ID = 'i-0123456789abcdef0';

async function tick(fleet: ControlledFleet, seconds: number): Promise<void> {
  fleet.at(seconds);
  await fleet.controllers.tickCloudNode(fleet.slot());
  await fleet.streams();
}

it('the Node of a stopped instance gets the taint on a tick without another change', async () => {
  const fleet = controlledFleet({ hasCloud: true });
  fleet.cloud.put({
    instanceId: ID,
    zone: 'eu-central-1a',
    instanceType: 'm5.large',
    launchedAtMs: fleet.nowMs() - 3_600_000,
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  });
  await fleet.register('vm', { providerID: `aws:///eu-central-1a/${ID}` });
  fleet.at(600);
  await fleet.post('vm', 'False');
  await fleet.streams();
  // The first tick stores the addresses of the instance.
  await tick(fleet, 605);
  fleet.cloud.stop(ID);
  await tick(fleet, 610);
  expect(await fleet.taints('vm')).toContain('shutdown:NoSchedule');
});
