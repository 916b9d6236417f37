import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { refusalsAdded } from '../../shared/access/refusal-store.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { START_MS, settledFleet } from '../../test/support/controlled-fleet.ts';

const GREEDY = { kind: 'node', username: 'system:node:a-0', over: 'time' };

async function refusedIn(seconds: number) {
  const { fleet, names } = await settledFleet({ a: 3 });
  const add = refusalsAdded(fleet.tables);
  const run = (from: number, to: number) => fleet.run(from, to, async (at) => at % 10 === 0 && fleet.beat(...names));
  await run(0, seconds);
  await add({ ...GREEDY, count: 40 }, fleet.nowMs());
  await add({ ...GREEDY, count: 2 }, fleet.nowMs());
  await add({ kind: 'person', username: 'arn:aws:iam::1:user/vera', over: 'rate', count: 7 }, fleet.nowMs());
  const refusals = async () => {
    const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 });
    return decisions.filter(({ record }) => record.act === 'RequestsRefused').map(({ record }) => record);
  };
  const metrics = () => fleet.metrics.filter(({ name }) => name === 'refused_requests');
  return { fleet, run, refusals, metrics };
}

describe('refused requests of a minute', () => {
  it('are recorded once per identity, after the minute, with a metric by kind', async () => {
    const { run, refusals, metrics } = await refusedIn(30);
    await run(35, 60);
    expect(await refusals()).toEqual([]);
    await run(65, 300);
    const records = await refusals();
    expect(records.map(({ about, reason }) => [about, reason])).toEqual([
      [
        { kind: 'Node', name: 'a-0' },
        `42 requests of system:node:a-0 were refused in the minute from 2026-01-01T00:00:00Z: over its share of the time of a function; requests of others were served`,
      ],
      [
        { kind: 'Object', name: 'arn:aws:iam::1:user/vera' },
        expect.stringContaining('7 requests of arn:aws:iam::1:user/vera were refused'),
      ],
    ]);
    expect(records.map((record) => replay(record).same)).toEqual([true, true]);
    expect(records[0]?.atMs).toBe(START_MS + 70_000);
    expect(metrics()).toEqual([
      { name: 'refused_requests', value: 49, unit: 'Count' },
      { name: 'refused_requests', value: 42, unit: 'Count', reason: 'node' },
      { name: 'refused_requests', value: 7, unit: 'Count', reason: 'person' },
    ]);
  });

  it('mark, taint and delay no node', async () => {
    const { fleet, run } = await refusedIn(30);
    await run(35, 200);
    expect(await fleet.ready('a-0')).toBe('True');
    expect(await fleet.taints('a-0')).toEqual([]);
  });
});
