/** PN: marking pods not ready. Grace 50 s. */
import { describe, expect, it } from 'vitest';
import { isMarkable } from '../../shared/app/controllers/mark-pods.ts';
import { markPodNotReady, marksPodsBoundNow } from '../../shared/domain/conditions.ts';
import { podNotReady } from '../../shared/domain/event-text.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const T0 = Date.UTC(2015, 0, 1, 12);
const MINUTE = 60_000;
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };
const aPod = { apiVersion: 'v1', kind: 'Pod', metadata: {} };
const readyPod = { conditions: [{ type: 'Ready', status: 'True' }] };

/** Nodes whose pods are to be marked by a pass. */
const podMarks = (fleet: MonitoredFleet) =>
  fleet.decisions.filter(
    ({ decision }) => decision.kind === 'markPods' || (decision.kind === 'markUnknown' && decision.markPods),
  );

describe('PN marking pods not ready', () => {
  it('PN-01 leaves pods of a node that has only just been created', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n', ready: undefined, createdAtMs: T0 })], GRACE_50);
    fleet.pass(T0);
    expect(podMarks(fleet)).toHaveLength(0);
  });

  it('PN-03 marks the pod of a node that falls silent, once', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n', statusAtMs: T0 })], GRACE_50);
    fleet.pass(T0);
    fleet.pass(T0 + MINUTE);
    fleet.pass(T0 + MINUTE + 5_000);
    expect(podMarks(fleet)).toHaveLength(1);
    expect(markPodNotReady(readyPod.conditions, T0)?.[0]?.status).toBe('False');
    expect(podNotReady).toMatchObject({ type: 'Warning', reason: 'NodeNotReady', message: 'Node is not ready' });
  });

  it('PN-05 marks the 5000 pods of 50 nodes exactly once each', () => {
    const nodes = Array.from({ length: 50 }, (_, index) => aNode({ nodeName: `n-${index}`, statusAtMs: T0 }));
    const fleet = new MonitoredFleet(nodes, GRACE_50);
    fleet.pass(T0);
    fleet.pass(T0 + MINUTE);
    const pods = Array.from({ length: 100 }, () => ({ ...aPod, status: readyPod }));
    expect(podMarks(fleet)).toHaveLength(50);
    expect(podMarks(fleet).length * pods.filter(isMarkable).length).toBe(5_000);
  });

  it('PN-07 tries again in the next pass when a pod could not be written, while the node is not Ready', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n', createdAtMs: T0, statusAtMs: T0 })], GRACE_50);
    fleet.pass(T0);
    fleet.pass(T0 + MINUTE);
    fleet.change('n', { podsToMark: true }); // the write failed
    fleet.post('n', 'False', T0 + MINUTE);
    fleet.pass(T0 + MINUTE);
    expect(podMarks(fleet)).toHaveLength(2);
    fleet.pass(T0 + MINUTE + 5_000);
    expect(podMarks(fleet)).toHaveLength(2);
  });

  it('PN-07 gives up the retry when the node is Ready again', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n', statusAtMs: T0, podsToMark: true })], GRACE_50);
    fleet.pass(T0);
    expect(podMarks(fleet)).toHaveLength(0);
    expect(fleet.node('n').podsToMark).toBeUndefined();
  });

  it('PN-09 neither tells nor marks when the kubelet itself posts Ready False', () => {
    const fleet = new MonitoredFleet([aNode({ nodeName: 'n', createdAtMs: T0, statusAtMs: T0 })], GRACE_50);
    fleet.pass(T0);
    fleet.post('n', 'False', T0 + 10_000);
    fleet.pass(T0 + 10_000);
    expect(podMarks(fleet)).toHaveLength(0);
    expect(fleet.events).toHaveLength(0);
  });

  it('PN-11 marks a pod at once when it is bound to a node that is Unknown', () => {
    expect(marksPodsBoundNow('Unknown')).toBe(true);
  });

  it('PN-13 says nothing about a pod bound to a node that is not known', () => {
    expect(marksPodsBoundNow(undefined)).toBe(false);
  });
});
