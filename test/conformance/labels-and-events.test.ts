/** LE: labels and node events. Grace 50 s. */
import { describe, expect, it } from 'vitest';
import { osArchLabels, topologyLabels } from '../../functions/object-stream/node-taints.ts';
import { nodeNotReady, registeredNode, removingNode } from '../../shared/events/event-text.ts';
import { MonitoredFleet } from '../support/monitored-fleet.ts';

const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };

describe('LE labels', () => {
  it('LE-02 sets nothing on a node without labels', () => {
    expect(osArchLabels(undefined)).toBeUndefined();
    expect(osArchLabels({})).toBeUndefined();
  });

  it('LE-04 adds both beta labels from the stable ones', () => {
    expect(osArchLabels({ 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' })).toEqual({
      'beta.kubernetes.io/os': 'linux',
      'beta.kubernetes.io/arch': 'amd64',
    });
  });

  it('LE-06 leaves a beta label that has no stable one', () => {
    expect(osArchLabels({ 'beta.kubernetes.io/os': 'linux' })).toBeUndefined();
  });

  it('LE-08 reads the beta label as source for instance type and topology', () => {
    expect(topologyLabels({ 'node.kubernetes.io/instance-type': 'm' })).toBeUndefined();
    expect(topologyLabels({ 'beta.kubernetes.io/instance-type': 'm' })).toEqual({
      'node.kubernetes.io/instance-type': 'm',
    });
  });
});

describe('LE node events', () => {
  it('LE-10 emits NodeNotReady once, however long the node stays Unknown', async () => {
    const fleet = await MonitoredFleet.of([{ nodeName: 'n0' }], GRACE_50);
    await fleet.run(0, 110_000);
    await fleet.fleet.streams();
    expect(await fleet.events('NodeNotReady')).toMatchObject([
      { type: 'Normal', message: 'Node n0 status is now: NodeNotReady', count: 1, involvedObject: { name: 'n0' } },
    ]);
  });

  it('LE uses the words of the upstream controller', () => {
    expect(registeredNode('n0')).toEqual({
      type: 'Normal',
      reason: 'RegisteredNode',
      message: 'Node n0 event: Registered Node n0 in Controller',
      source: 'node-controller',
    });
    expect(removingNode('n0').message).toBe('Node n0 event: Removing Node n0 from Controller');
    expect(nodeNotReady('n0').message).toBe('Node n0 status is now: NodeNotReady');
  });

  it('LE emits one event when a node registers and one when it is deleted', async () => {
    const fleet = await MonitoredFleet.of([{ nodeName: 'n0', beats: true }], GRACE_50);
    await fleet.fleet.streams();
    await fleet.run(0, 10_000);
    await fleet.remove('n0');
    await fleet.fleet.streams();
    await fleet.run(15_000, 25_000);
    const counts = async (reason: string) => (await fleet.events(reason)).map(({ count }) => count);
    expect([await counts('RegisteredNode'), await counts('RemovingNode')]).toEqual([[1], [1]]);
  });
});
