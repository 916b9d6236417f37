import { describe, expect, it } from 'vitest';
import { pageTable } from './page-table.ts';
import { mainThreadUpdates, type TraceEvent } from './page-trace.ts';

const thread = (pid: number, name: string): TraceEvent => ({
  ...{ name: 'thread_name', ph: 'M', pid, tid: 1, ts: 0 },
  args: { name },
});
const task = (pid: number, startMs: number, cpuMs: number, wallMs = cpuMs): TraceEvent => ({
  ...{ name: 'ThreadControllerImpl::RunTask', ph: 'X', pid, tid: 1 },
  ...{ ts: startMs * 1_000, dur: wallMs * 1_000, tdur: cpuMs * 1_000 },
});

describe('updates of a page', () => {
  it('are the CPU of what follows a change within 100 ms, of the busiest renderer', () => {
    const events = [
      thread(1, 'CrRendererMain'),
      thread(2, 'CrRendererMain'),
      thread(3, 'CrBrowserMain'),
      task(2, 0, 3),
      task(3, 0, 500),
      ...[task(1, 0, 5, 40), task(1, 60, 2), task(1, 120, 7)],
    ];
    expect(mainThreadUpdates(events)).toEqual([7, 7]);
  });

  it('count a task within another one once, and nothing below 1 ms', () => {
    expect(mainThreadUpdates([thread(1, 'CrRendererMain'), task(1, 0, 5), task(1, 1, 2), task(1, 200, 0.5)])).toEqual([
      5,
    ]);
  });
});

it('has a column for each number of nodes', () => {
  const figures = {
    ...{ nodes: 5_000, pods: 20_000, firstPaintSeconds: 0.2, allNodesSeconds: 1.5, nowMsPerSecond: 60 },
    ...{ nodesMsPerSecond: 40, podsMsPerSecond: 30, updateP50Ms: 9, updateP99Ms: 30, heapMegabytes: 10 },
  };
  expect(pageTable([figures]).split('\n').slice(0, 3)).toEqual([
    '|  | 5,000 nodes |',
    '| --- | --- |',
    '| first paint | 0.2 s |',
  ]);
});
