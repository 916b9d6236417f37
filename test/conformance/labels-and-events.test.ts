/** LE: labels and node events. Grace 50 s. */
import { describe, expect, it } from 'vitest';
import { nodeNotReady, registeredNode, removingNode } from '../../shared/domain/event-text.ts';
import { osArchLabels, topologyLabels } from '../../shared/domain/label-sync.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

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

  it('LE-08 takes the beta label as source for instance type and topology', () => {
    expect(topologyLabels({ 'node.kubernetes.io/instance-type': 'm' })).toBeUndefined();
    expect(topologyLabels({ 'beta.kubernetes.io/instance-type': 'm' })).toEqual({
      'node.kubernetes.io/instance-type': 'm',
    });
  });
});

describe('LE node events', () => {
  it('LE-10 tells NodeNotReady once, however long the node stays Unknown', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n0', statusAtMs: 0 })], GRACE_50);
    fleet.run(0, 110_000);
    expect(fleet.events.map(({ event }) => event)).toEqual([nodeNotReady('n0')]);
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

  it('LE tells of a node once when it comes and once when it goes', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n0', statusAtMs: 0, unannounced: true })], GRACE_50);
    fleet.run(0, 10_000);
    fleet.change('n0', { deletedAtMs: 12_000 });
    fleet.run(15_000, 25_000);
    expect(fleet.events.map(({ event }) => event.reason)).toEqual(['RegisteredNode', 'RemovingNode']);
    expect(fleet.world.nodes).toEqual([]);
  });
});
