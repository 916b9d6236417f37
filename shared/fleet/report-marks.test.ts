import { expect, it } from 'vitest';
import type { MarkOutcome } from './mark-nodes.ts';
import { reportMarks } from './report-marks.ts';

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
