/** NX: NoExecute tainting. Grace 50 s. */
import { describe, expect, it } from 'vitest';
import type { Taint } from '../../shared/domain/kubernetes.ts';
import { swapNoExecute } from '../../shared/domain/node-taints.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const T1 = Date.UTC(2017, 0, 1, 12);
const LONG_AGO = Date.UTC(2015, 0, 1, 12);
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };

describe('NX NoExecute tainting', () => {
  it('NX-02 lifts the taint of a node that is Ready again', () => {
    const fleet = new MonitoredFleet(
      [
        aNode({ nodeName: 'node0', ready: 'Unknown', statusAtMs: LONG_AGO }),
        aNode({ nodeName: 'node1', statusAtMs: T1 }),
        aNode({ nodeName: 'node2', ready: 'False', statusAtMs: T1 }),
        aNode({ nodeName: 'node3', statusAtMs: T1 }),
      ],
      { ...GRACE_50, nodeEvictionRatePerSecond: 100_000 },
    );
    fleet.pass(T1);
    fleet.evict(T1);
    fleet.evict(T1 + 1);
    expect([fleet.taints('node0'), fleet.taints('node2')]).toEqual([['unreachable'], ['notReady']]);
    fleet.post('node2', 'True', T1 + 5_000);
    fleet.pass(T1 + 5_000);
    fleet.evict(T1 + 5_000);
    expect(fleet.taints('node2')).toEqual([]);
    expect(fleet.taints('node0')).toEqual(['unreachable']);
  });

  it('NX-04 taints nobody while nodes are Ready', () => {
    const fleet = new MonitoredFleet(
      ['node0', 'node1'].map((nodeName) => aNode({ nodeName, statusAtMs: T1 })),
      GRACE_50,
    );
    fleet.run(T1, T1);
    expect(fleet.taintings).toEqual([]);
  });

  it('NX-06 lifts unreachable from a node that posts again', () => {
    const fleet = new MonitoredFleet(
      ['node0', 'node1'].map((nodeName) => aNode({ nodeName, statusAtMs: T1 })),
      GRACE_50,
    );
    fleet.run(T1, T1);
    fleet.post('node1', 'True', T1 + 51_000);
    fleet.run(T1 + 51_000, T1 + 51_000);
    expect(fleet.taints('node0')).toEqual(['unreachable']);
    fleet.post('node0', 'True', T1 + 52_000);
    fleet.run(T1 + 56_000, T1 + 56_000);
    expect(fleet.taints('node0')).toEqual([]);
  });

  it('NX-08 changes unreachable for not-ready when the node posts Ready False', () => {
    const fleet = new MonitoredFleet(
      [
        aNode({
          nodeName: 'node0',
          ready: 'Unknown',
          statusAtMs: LONG_AGO,
          noExecute: { notReady: false, unreachable: true },
        }),
        aNode({ nodeName: 'node1', statusAtMs: T1 }),
      ],
      GRACE_50,
    );
    fleet.run(T1, T1);
    fleet.post('node0', 'False', T1 + 1_000);
    fleet.post('node1', 'True', T1 + 1_000);
    fleet.run(T1 + 5_000, T1 + 5_000);
    expect(fleet.taints('node0')).toEqual(['notReady']);
  });

  it('NX-10 changes not-ready for unreachable in the very pass that finds the node silent', () => {
    const fleet = new MonitoredFleet(
      [
        aNode({
          nodeName: 'node0',
          ready: 'False',
          statusAtMs: LONG_AGO,
          noExecute: { notReady: true, unreachable: false },
        }),
        aNode({ nodeName: 'node1', statusAtMs: T1 }),
      ],
      GRACE_50,
    );
    fleet.pass(T1);
    expect(fleet.node('node0').ready).toBe('Unknown');
    expect(fleet.taints('node0')).toEqual(['unreachable']);
  });

  it('NX-10 keeps the clock of the pods running through the change (D6)', () => {
    const notReady: Taint = {
      key: 'node.kubernetes.io/not-ready',
      effect: 'NoExecute',
      timeAdded: '2017-01-01T11:00:00Z',
    };
    expect(swapNoExecute([notReady], 'unreachable', T1)).toEqual([
      { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: '2017-01-01T11:00:00Z' },
    ]);
  });

  it('NX-12 writes nothing more while the taint stands', () => {
    const fleet = new MonitoredFleet(
      [
        aNode({ nodeName: 'node0', ready: 'Unknown', statusAtMs: LONG_AGO }),
        aNode({ nodeName: 'node1', statusAtMs: T1, renewedAtMs: T1 + 100_000 }),
      ],
      GRACE_50,
    );
    fleet.run(T1, T1);
    const decided = fleet.decisions.length;
    fleet.run(T1 + 5_000, T1 + 50_000);
    expect(fleet.decisions).toHaveLength(decided);
    expect(fleet.taintings).toHaveLength(1);
  });

  it('NX-14 drops a queued node that was deleted, without a token', () => {
    const fleet = new MonitoredFleet(
      [
        aNode({ nodeName: 'node0', ready: 'Unknown', statusAtMs: LONG_AGO }),
        aNode({ nodeName: 'node1', ready: 'Unknown', statusAtMs: LONG_AGO }),
        aNode({ nodeName: 'node2', statusAtMs: T1 }),
      ],
      GRACE_50,
    );
    fleet.pass(T1);
    fleet.remove('node0');
    expect(fleet.evict(T1).map(({ kind, nodeName }) => [kind, nodeName])).toEqual([
      ['drop', 'node0'],
      ['taint', 'node1'],
    ]);
    expect(fleet.queued()).toEqual([]);
  });

  it('NX-16 taints by the state at its turn: queued as Ready False, Unknown by then', () => {
    const fleet = new MonitoredFleet(
      [aNode({ nodeName: 'node0', ready: 'False', statusAtMs: T1 }), aNode({ nodeName: 'node1', statusAtMs: T1 })],
      GRACE_50,
    );
    fleet.pass(T1);
    fleet.change('node0', { ready: 'Unknown' });
    fleet.evict(T1);
    expect(fleet.taints('node0')).toEqual(['unreachable']);
  });

  it('NX-18 counts taintings, not instant swaps', () => {
    const fleet = new MonitoredFleet(
      [
        aNode({ nodeName: 'n0', zone: 'A', ready: 'Unknown', statusAtMs: LONG_AGO }),
        aNode({ nodeName: 'n1', zone: 'A', ready: 'Unknown', statusAtMs: LONG_AGO }),
        aNode({ nodeName: 'n2', zone: 'A', statusAtMs: T1, renewedAtMs: T1 + 100_000 }),
      ],
      GRACE_50,
    );
    fleet.run(T1, T1 + 10_000);
    fleet.post('n0', 'False', T1 + 12_000);
    fleet.run(T1 + 15_000, T1 + 15_000);
    expect(fleet.taintings).toHaveLength(2);
    expect(fleet.swaps).toBe(1);
  });
});
