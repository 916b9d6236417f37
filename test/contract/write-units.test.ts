/**
 * Write units of a change, counted on the memory tables as DynamoDB bills them. `npm run bench -- write-units`: by
 * item.
 */
import { describe, expect, it } from 'vitest';
import { withCondition } from '../../agent/rules/node-conditions.ts';
import { nodeStatusPatch } from '../../agent/rules/node-patch.ts';
import { finalPodDeletion, podStatusReport } from '../../agent/rules/pod-requests.ts';
import { startedStatus } from '../../agent/rules/started-pod.ts';
import { nameMachines } from '../../demo/fleet/names.ts';
import { nodeAt } from '../../demo/fleet/node-object.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { servedFleet } from '../support/served-fleet.ts';

const PODS = '/api/v1/namespaces/default/pods';
const contentType = 'application/strategic-merge-patch+json';
const [machine] = nameMachines(1, ['zone-a']);
const { name } = machine!;

async function registered(policy: Partial<Policy> = {}) {
  const served = servedFleet([name], { policy });
  const { fleet, send } = served;
  await send('GET', '/api/v1/namespaces');
  await send('GET', '/apis/scheduling.k8s.io/v1/priorityclasses');
  await send('POST', '/api/v1/nodes', { body: nodeAt(machine!, 'eu-central-1', fleet.nowMs()) });
  fleet.at(10);
  await fleet.streams();
  fleet.at(20);
  fleet.consumed();
  /** The machine sends the status with this condition. Returns the units of the request. */
  const report = async (type: string, status: 'True' | 'False'): Promise<number> => {
    const read = (await send('GET', `/api/v1/nodes/${name}`)) as KubeNode;
    const now = formatTime(fleet.nowMs());
    const condition = { type, status, reason: 'Changed', message: 'it has changed', lastTransitionTime: now };
    const conditions = withCondition(read.status?.conditions, { ...condition, lastHeartbeatTime: now });
    const body = nodeStatusPatch(read, { ...read, status: { ...read.status, conditions } });
    fleet.consumed();
    await served.sendAs(name, 'PATCH', `/api/v1/nodes/${name}/status`, { body, contentType });
    return fleet.consumed().writeUnits;
  };
  return { ...served, report };
}

describe('write units', () => {
  it('of a status that changes a Node are at most 9, with and without its digest', async () => {
    const { report } = await registered();
    expect(await report('MemoryPressure', 'True')).toBe(6);
    expect(await report('Ready', 'False')).toBe(8);
  });

  it('of a pod from its creation to its removal are at most 40, reactions included', async () => {
    const { fleet, send } = await registered();
    const streams = async (): Promise<void> => {
      await fleet.streams();
      fleet.at(fleet.seconds() + 1);
    };
    const spec = { nodeName: name, containers: [{ name: 'c', image: 'registry.example/app:1' }] };
    const created = await send('POST', PODS, { body: { metadata: { name: 'web-7d9c6b8f4-x2k8q' }, spec } });
    await streams();
    const status = startedStatus(created, fleet.nowMs(), '10.16.0.10');
    const started = podStatusReport(created, { ...status, podIP: '10.16.0.9', podIPs: [{ ip: '10.16.0.9' }] });
    await send(started.method, started.path, { body: started.body, contentType });
    await streams();
    const deleted: KubeObject = await send('DELETE', `${PODS}/web-7d9c6b8f4-x2k8q?gracePeriodSeconds=1`);
    await streams();
    const removal = finalPodDeletion(deleted);
    await send(removal.method, removal.path, { body: removal.body });
    await streams();
    const { writeUnits } = fleet.consumed();
    expect(writeUnits).toBeLessThanOrEqual(40);
    expect(writeUnits).toBeGreaterThan(20);
  });
});
