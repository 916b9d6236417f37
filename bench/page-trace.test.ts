import { describe, expect, it } from 'vitest';
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
      // A trace is not in order of time.
      ...[task(1, 120, 7), task(1, 99, 2), task(1, 0, 5, 40)],
    ];
    expect(mainThreadUpdates(events)).toEqual([7, 7]);
  });

  it('count a task within another one once, and nothing below 1 ms', () => {
    expect(mainThreadUpdates([thread(1, 'CrRendererMain'), task(1, 0, 5), task(1, 1, 2), task(1, 200, 0.5)])).toEqual([
      5,
    ]);
  });
});
