import { expect, it } from 'vitest';
import { type ControlledFleet, settledFleet } from '../../test/support/controlled-fleet.ts';
import type { ItemStore } from '../store/item-store.ts';
import { type MarkOutcome, markNodes, reportMarks } from './mark-nodes.ts';
import { defaultPolicy } from './policy.ts';

/**
 * Node a-0 beats, the others are silent for longer than the grace period. `beforeMarks` runs before the first commit of
 * marks.
 */
async function silentFleet(size: number, beforeMarks: (fleet: ControlledFleet) => Promise<void> = async () => {}) {
  let isDue = false;
  const between = (items: ItemStore): ItemStore => ({
    ...items,
    async transact(writes) {
      const marks = writes.some((write) => write.kind === 'update' && write.set?.['m'] !== undefined);
      if (isDue && marks) {
        isDue = false;
        await beforeMarks(fleet);
      }
      return items.transact(writes);
    },
  });
  const { fleet } = await settledFleet({ a: size }, { between });
  await fleet.run(0, 40, () => fleet.beat('a-0'));
  fleet.at(45);
  isDue = true;
  return fleet;
}

it('a node that beats before its mark is written stays unmarked, and the tick leaves no work', async () => {
  const fleet = await silentFleet(4, (all) => all.beat('a-1'));
  const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
  expect(report).toMatchObject({ kind: 'ran', marked: 2, left: 0 });
  expect(await Promise.all(['a-1', 'a-2', 'a-3'].map((name) => fleet.ready(name)))).toEqual([
    'True',
    'Unknown',
    'Unknown',
  ]);
});

it('a node that announces its silence before its mark is written stays unmarked', async () => {
  const annotations = { 'nodekeeper.dev/planned-silence-until': '2026-01-01T01:00:00Z' };
  const fleet = await silentFleet(4, (all) =>
    all.changeNode('a-1', (node) => ({ ...node, metadata: { ...node.metadata, annotations } })),
  );
  const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
  expect(report).toMatchObject({ kind: 'ran', marked: 2, left: 0 });
  expect(await Promise.all(['a-1', 'a-2', 'a-3'].map((name) => fleet.ready(name)))).toEqual([
    'True',
    'Unknown',
    'Unknown',
  ]);
});

it('a Node that is removed before its mark is written leaves no work', async () => {
  const fleet = await silentFleet(4, (all) => all.removeNode('a-1'));
  const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
  expect(report).toMatchObject({ kind: 'ran', marked: 2, left: 0 });
});

it('a Node too large to be marked stays as work that is left, and the others are marked', async () => {
  const fleet = await silentFleet(4);
  const textLength = JSON.stringify(await fleet.node('a-1')).length;
  const annotations = { 'example.com/large': 'x'.repeat(119_900 - textLength) };
  await fleet.changeNode('a-1', (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
  const { status } = (await fleet.node('a-1'))!;
  expect(status?.conditions?.[0]?.status).toBe('True');
  const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
  expect(report).toMatchObject({ kind: 'ran', marked: 2, left: 1 });
  expect(await Promise.all(['a-1', 'a-2', 'a-3'].map((name) => fleet.ready(name)))).toEqual([
    'True',
    'Unknown',
    'Unknown',
  ]);
});

it('a node that beats before its mark is written spares no other node of its commit', async () => {
  const fleet = await silentFleet(40, (all) => all.beat('a-1'));
  const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
  expect(report).toMatchObject({ kind: 'ran', marked: 38, left: 0 });
  expect(await fleet.ready('a-1')).toBe('True');
});

it('a commit that is always contended is given up after 50 attempts, and left to the next tick', async () => {
  let commits = 0;
  const node = { metadata: { name: 'n', uid: 'u' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  const objects = {
    getMany: async () => [node],
    listByNode: async () => [],
    async commit() {
      commits += 1;
      if (commits > 1_000) throw new Error('no end');
      return { kind: 'contended' };
    },
  };
  const dependencies = { objects, random: { uuid: () => 'e' }, ledger: { writeAll: () => [] }, policy: defaultPolicy };
  const decision = { kind: 'mark', nodeName: 'n', uid: 'u', zone: 'a', markPods: false };
  const seen = { nodeName: 'n', uid: 'u', shard: 0 };
  const at = { nowMs: 0, budget: { hasTime: () => true }, tick: {}, zones: new Map() };
  const outcome = await markNodes(dependencies as never, [{ decision, seen }] as never, at as never);
  expect([commits, outcome]).toEqual([50, { marked: [], spared: 0, left: 1, faults: [] }]);
});

function reported(silentSeconds: readonly number[], sinceDecisionMs?: number, shortened: readonly number[] = []) {
  const metrics: [string, number, string][] = [];
  const lines: unknown[] = [];
  const silent = () => {};
  const marked = silentSeconds.map((each, index) => ({
    decision: {
      nodeName: `n${index}`,
      zone: 'a',
      silentSeconds: each,
      graceSeconds: 40,
      accusation: index === 0 ? undefined : { shortens: shortened.includes(index) },
    },
  }));
  reportMarks(
    {
      meter: { add: (name, value, unit) => metrics.push([name, value, unit]) },
      log: { debug: silent, warn: silent, error: silent, info: (_message, fields) => lines.push(fields) },
    },
    { marked, spared: 1, left: 2, faults: [] } as unknown as MarkOutcome,
    sinceDecisionMs === undefined ? {} : { sinceDecisionMs },
  );
  return { metrics, lines };
}

it('marks are counted, with the longest time until one', () => {
  expect(reported([41, 45, 43])).toMatchObject({
    metrics: [
      ['marked_nodes', 3, 'Count'],
      ['detection_seconds', 45, 'Seconds'],
    ],
    lines: [{ marked: 3, spared: 1, left: 2 }],
  });
  expect(reported([41], 1_500).metrics[1]).toEqual(['detection_seconds', 42.5, 'Seconds']);
  expect(reported([]).metrics).toEqual([['marked_nodes', 0, 'Count']]);
});

it('marks that rest on witnesses are counted, if there are any', () => {
  const counted = (shortened: readonly number[]) =>
    reported([41, 45, 43, 44], 0, shortened).metrics.find(([name]) => name === 'marked_nodes_by_witnesses');
  expect(counted([1, 3])).toEqual(['marked_nodes_by_witnesses', 2, 'Count']);
  expect(counted([])).toBeUndefined();
});

it('ten names are logged at most', () => {
  const [line] = reported(Array.from({ length: 11 }, () => 41)).lines as { nodes: object[] }[];
  expect(line?.nodes).toHaveLength(10);
  expect(line?.nodes[0]).toEqual({ nodeName: 'n0', zone: 'a', silentSeconds: 41, graceSeconds: 40 });
});
