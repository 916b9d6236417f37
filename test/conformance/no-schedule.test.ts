/** NS: NoSchedule taints from conditions. */
import { describe, expect, it } from 'vitest';
import { reconcileNoSchedule } from '../../shared/fleet/nodes/node-taints.ts';
import type { NodeCondition, Taint } from '../../shared/kubernetes/kubernetes.ts';
import { controlledFleet } from '../support/controlled-fleet.ts';

const conditions = (statuses: Record<string, NodeCondition['status']>): NodeCondition[] =>
  Object.entries(statuses).map(([type, status]) => ({ type, status }));
const noSchedule = (name: string): Taint => ({ key: `node.kubernetes.io/${name}`, effect: 'NoSchedule' });

describe('NS NoSchedule taints from conditions', () => {
  it('NS-02 taints a node with Ready False exactly with not-ready', () => {
    expect(
      reconcileNoSchedule({ taints: [], conditions: conditions({ Ready: 'False' }), unschedulable: false }),
    ).toEqual([noSchedule('not-ready')]);
  });

  it('NS-04 adds one taint for each pressure', () => {
    const pressed = conditions({ Ready: 'True', MemoryPressure: 'True', DiskPressure: 'True', PIDPressure: 'True' });
    expect(reconcileNoSchedule({ taints: [], conditions: pressed, unschedulable: false })).toEqual([
      noSchedule('memory-pressure'),
      noSchedule('disk-pressure'),
      noSchedule('pid-pressure'),
    ]);
  });

  it('NS-06 a cordoned node has exactly the taint unschedulable', () => {
    expect(reconcileNoSchedule({ taints: [], conditions: conditions({ Ready: 'True' }), unschedulable: true })).toEqual(
      [noSchedule('unschedulable')],
    );
  });

  it('NS-08 leaves other effects and other keys', () => {
    const taints: Taint[] = [
      { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
      { key: 'foo', effect: 'NoSchedule' },
      { key: 'node.kubernetes.io/disk-pressure', effect: 'PreferNoSchedule' },
    ];
    expect(
      reconcileNoSchedule({ taints, conditions: conditions({ Ready: 'True' }), unschedulable: false }),
    ).toBeUndefined();
  });

  it('NS-10 leaves a taint of ours that carries a value set by hand', () => {
    const taints: Taint[] = [{ ...noSchedule('memory-pressure'), value: 'by-hand' }];
    const pressed = conditions({ Ready: 'True', MemoryPressure: 'True' });
    expect(reconcileNoSchedule({ taints, conditions: pressed, unschedulable: false })).toBeUndefined();
  });

  it('NS-12 neither fails nor writes when the Node was deleted in the meantime', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.streams();
    await fleet.post('n1', 'True', [{ type: 'DiskPressure', status: 'True' }]);
    const posted = fleet.tables
      .changes('objects')
      .filter(({ key }) => key.sk === 'n1' && key.pk.startsWith('o#nodes#'));
    await fleet.removeNode('n1');
    const before = fleet.tables.items('objects');
    expect(await fleet.controllers.onObjectRecords(posted.slice(-1))).toEqual({ faults: [], postponed: [] });
    expect(fleet.tables.items('objects')).toEqual(before);
  });
});
