import { describe, expect, it } from 'vitest';
import { settledFleet } from '../../../test/support/controlled-fleet.ts';
import { monitorParts } from '../../../test/support/monitor-parts.ts';
import { decisionStore } from '../../decisions/decision-store.ts';
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import { endPlannedSilence, liftTaints, swapTaints } from './lift-taints.ts';
import { PLANNED_UNTIL_ANNOTATION } from './planned-silence.ts';

async function taintedNode(ready: ConditionStatus, key = 'unreachable') {
  const { fleet } = await settledFleet({ a: 1 });
  fleet.at(60);
  await fleet.changeNode('a-0', (node) => ({
    ...node,
    spec: {
      ...node.spec,
      taints: [{ key: `node.kubernetes.io/${key}`, effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' }],
    },
    status: { ...node.status, conditions: [{ type: 'Ready', status: ready }] },
  }));
  const { dependencies } = monitorParts({}, { nowMs: fleet.nowMs(), items: fleet.tables });
  const target = {
    nodeName: 'a-0',
    uid: (await fleet.node('a-0'))!.metadata.uid!,
    nowMs: fleet.nowMs(),
    tick: { slot: 7 },
  };
  const records = async () =>
    (await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 100 })).decisions
      .map(({ record }) => record)
      .filter(({ slot }) => slot === 7)
      .map(({ act }) => act);
  return { fleet, dependencies, target, records };
}

describe('our NoExecute taints', () => {
  it('are removed from a Ready node, with a record', async () => {
    const { fleet, dependencies, target, records } = await taintedNode('True');
    expect((await liftTaints(dependencies, target, 'ready')).kind).toBe('written');
    expect([await fleet.taints('a-0'), await records()]).toEqual([[], ['TaintLifted']]);
    expect((await liftTaints(dependencies, target, 'ready')).kind).toBe('nothing');
  });

  it('stay on a node that is no longer Ready, and are removed from any in total disruption', async () => {
    const { fleet, dependencies, target, records } = await taintedNode('Unknown');
    expect((await liftTaints(dependencies, target, 'ready')).kind).toBe('nothing');
    expect([await fleet.taints('a-0'), await records()]).toEqual([['unreachable:NoExecute'], []]);
    expect((await liftTaints(dependencies, target, 'totalDisruption')).kind).toBe('written');
    expect(await fleet.taints('a-0')).toEqual([]);
  });

  it('are replaced while the node requires the other one, and keep their time', async () => {
    const { fleet, dependencies, target, records } = await taintedNode('False');
    expect((await swapTaints(dependencies, target, 'unreachable')).kind).toBe('nothing');
    expect((await swapTaints(dependencies, target, 'notReady')).kind).toBe('written');
    expect((await fleet.node('a-0'))?.spec?.taints).toEqual([
      { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
    ]);
    expect(await records()).toEqual(['TaintSwapped']);
    expect((await swapTaints(dependencies, target, 'notReady')).kind).toBe('nothing');
  });
});

describe('the end of a promise', () => {
  it('removes the promise that it names, to the second, and no newer one', async () => {
    const { fleet, dependencies, target } = await taintedNode('True');
    const untilMs = Date.UTC(2026, 0, 1, 1);
    await fleet.changeNode('a-0', (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { [PLANNED_UNTIL_ANNOTATION]: '2026-01-01T01:00:00Z' } },
    }));
    const stands = async (plannedUntilMs: number) => {
      await endPlannedSilence(dependencies, { ...target, plannedUntilMs }, fleet.nowMs());
      return (await fleet.node('a-0'))?.metadata.annotations?.[PLANNED_UNTIL_ANNOTATION] !== undefined;
    };
    expect([await stands(untilMs - 1_000), await stands(untilMs + 1), await stands(untilMs - 400)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(await stands(untilMs)).toBe(false);
  });
});
