import { describe, expect, it } from 'vitest';
import { StoreFault } from '../../shared/store/item-store.ts';
import { settledFleet } from '../../test/support/controlled-fleet.ts';

it('removes the node from the queue at the first heartbeat after its mark; the next ones cost no write', async () => {
  const { fleet } = await settledFleet({ a: 3 });
  await fleet.run(0, 45, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-0', 'a-1') : Promise.resolve()));
  expect(await fleet.ready('a-2')).toBe('Unknown');
  const writesAfterBeat = async (seconds: number): Promise<number> => {
    fleet.at(seconds);
    await fleet.beat('a-2');
    fleet.consumed();
    await fleet.streams();
    return fleet.consumed().writes;
  };
  expect(await writesAfterBeat(46)).toBe(1);
  expect(await writesAfterBeat(56)).toBe(0);
});

describe('a record with failing work', () => {
  /** Nodes with our NoExecute taint that post Ready: the records of these posts. `refusals` of writes to a-1 follow. */
  async function recovering(refusals: number) {
    let left = 0;
    const { fleet } = await settledFleet(
      { a: 4 },
      {
        policy: { nodeEvictionRatePerSecond: 1 },
        between: (items) => ({
          ...items,
          transact(writes) {
            if (left === 0 || !writes.some(({ key }) => key.sk === 'a-1')) return items.transact(writes);
            left -= 1;
            return Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }));
          },
        }),
      },
    );
    await fleet.run(0, 60, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-0', 'a-3') : Promise.resolve()));
    for (const name of ['a-1', 'a-2']) expect(await fleet.taints(name)).toContain('unreachable:NoExecute');
    fleet.at(62);
    const seen = fleet.tables.changes('health').at(-1)?.sequence;
    for (const name of ['a-1', 'a-2']) await fleet.post(name);
    left = refusals;
    return { fleet, records: fleet.tables.changes('health', seen) };
  }

  it('does not delay the nodes behind it; node-monitor does the work at its next tick', async () => {
    const { fleet, records } = await recovering(2);
    const outcome = await fleet.controllers.onHealthRecords(records);
    expect(outcome.failedFrom).toBeUndefined();
    expect(outcome).toMatchObject({ faults: [], postponed: [{ code: 'throttled' }] });
    expect(fleet.metrics.filter(({ name }) => name === 'stream_record_works_postponed_total')).toHaveLength(1);
    expect(await fleet.taints('a-2')).not.toContain('unreachable:NoExecute');
    expect(await fleet.taints('a-1')).toContain('unreachable:NoExecute');
    fleet.at(65);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect(await fleet.taints('a-1')).not.toContain('unreachable:NoExecute');
  });

  it('is retried once in place', async () => {
    const { fleet, records } = await recovering(1);
    expect(await fleet.controllers.onHealthRecords(records)).toEqual({ faults: [], postponed: [] });
    expect(await fleet.taints('a-1')).not.toContain('unreachable:NoExecute');
  });
});
