import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type ControlledFleet, START_MS, settledFleet } from '../support/controlled-fleet.ts';

const UNTIL = 'nodekeeper.dev/planned-silence-until';
const REASON = 'nodekeeper.dev/planned-silence-reason';
const TAINT = 'planned-silence:NoSchedule';

const promise = async (fleet: ControlledFleet, name: string, untilSeconds: number | undefined) => {
  await fleet.changeNode(name, (node) => {
    const { [UNTIL]: _until, [REASON]: _reason, ...others } = node.metadata.annotations ?? {};
    const own =
      untilSeconds === undefined ? {} : { [UNTIL]: rfc3339(START_MS + untilSeconds * 1_000), [REASON]: 'ferry' };
    return { ...node, metadata: { ...node.metadata, annotations: { ...others, ...own } } };
  });
  await fleet.streams();
};
const condition = async (fleet: ControlledFleet, name: string) =>
  (await fleet.node(name))?.status?.conditions?.find(({ type }) => type === 'PlannedSilence');
const markedAt = async (fleet: ControlledFleet, name: string) => {
  const atMs = (await fleet.health(name))?.markedAtMs;
  return atMs === undefined ? undefined : (atMs - START_MS) / 1_000;
};
const recordsOf = async (fleet: ControlledFleet, name: string) => {
  const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 10_000 });
  return decisions.map(({ record }) => record).filter(({ about }) => about.name === name);
};

/** Three nodes; all but a-0 send heartbeats. */
async function sleepyFleet(untilSeconds: number) {
  const { fleet, names } = await settledFleet({ a: 3 });
  await fleet.beat(...names);
  await promise(fleet, 'a-0', untilSeconds);
  const run = (from: number, to: number, more?: (seconds: number) => Promise<unknown>) =>
    fleet.run(from, to, async (seconds) => {
      if (seconds % 10 === 0) await fleet.beat('a-1', 'a-2');
      await more?.(seconds);
    });
  return { fleet, run };
}

describe('a node with planned silence', () => {
  it('is not marked before the promised end, and one grace period and at most one period after it', async () => {
    const { fleet, run } = await sleepyFleet(300);
    await run(5, 340);
    expect(await fleet.ready('a-0')).toBe('True');
    await run(345, 345);
    expect(await fleet.ready('a-0')).toBe('Unknown');
    expect(await markedAt(fleet, 'a-0')).toBe(345);
    expect(replay((await recordsOf(fleet, 'a-0')).find(({ act }) => act === 'MarkUnknown')!)).toMatchObject({
      same: true,
    });
  });

  it('has taint and condition while the promise stands, and neither the taint nor the promise after it', async () => {
    const { fleet, run } = await sleepyFleet(120);
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    expect(await condition(fleet, 'a-0')).toMatchObject({
      status: 'True',
      message: 'No heartbeat is expected until 2026-01-01T00:02:00Z: ferry',
    });
    await run(5, 115);
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    await run(120, 120);
    expect(await fleet.taints('a-0')).toEqual([]);
    expect(await condition(fleet, 'a-0')).toMatchObject({ status: 'False', reason: 'Ended' });
    expect((await fleet.node('a-0'))?.metadata.annotations).toBeUndefined();
  });

  it('does not count in its zone, is counted by a metric, and evicts no pod', async () => {
    const { fleet, run } = await sleepyFleet(500);
    await fleet.addPod('p', 'a-0');
    await run(5, 490);
    const of = (name: string) =>
      fleet.metrics.filter((each) => each.name === name && each.zone === 'a').map(({ value }) => value);
    expect(new Set(of('planned_silence_nodes'))).toEqual(new Set([1]));
    expect(new Set(of('node_collector_zone_size'))).toEqual(new Set([2]));
    expect(new Set(of('node_collector_unhealthy_nodes_in_zone'))).toEqual(new Set([0]));
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('is evaluated from now on when the promise is removed', async () => {
    const { fleet, run } = await sleepyFleet(3_000);
    await run(5, 200);
    await promise(fleet, 'a-0', undefined);
    expect(await fleet.taints('a-0')).toEqual([]);
    await run(205, 240);
    expect(await fleet.ready('a-0')).toBe('True');
    await run(245, 245);
    expect(await markedAt(fleet, 'a-0')).toBe(245);
  });

  it('has ended its silence when it sends a heartbeat after more than one grace period', async () => {
    const { fleet, run } = await sleepyFleet(3_000);
    // Not by a heartbeat before its silence.
    await run(5, 30, async (seconds) => seconds % 10 === 0 && fleet.beat('a-0'));
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    await run(35, 200);
    await fleet.beat('a-0');
    await fleet.streams();
    expect(await fleet.taints('a-0')).toEqual([]);
    await run(205, 300);
    expect(await markedAt(fleet, 'a-0')).toBe(245);
  });

  it.each([
    { outage: 'of the heartbeat path', probes: false, ticks: true },
    { outage: 'of everything', probes: false, ticks: false },
  ])('keeps its promise when the silence was an outage of ours: $outage', async ({ probes, ticks }) => {
    let accepted = true;
    const beat = async () => (accepted ? ({ kind: 'accepted' } as const) : ({ kind: 'failed', reason: 'x' } as const));
    const { fleet, names } = await settledFleet({ a: 3 }, { probe: { beat } });
    await fleet.beat(...names);
    await promise(fleet, 'a-0', 3_000);
    const run = (from: number, to: number, who: readonly string[]) =>
      fleet.run(from, to, async (seconds) => {
        if (seconds % 10 === 0) await fleet.beat(...who);
      });
    await run(5, 60, names);
    accepted = probes;
    if (ticks) await run(65, 180, []);
    accepted = true;
    // The first heartbeat arrives before the first tick of node-monitor.
    fleet.at(182);
    await fleet.beat(...names);
    await fleet.streams();
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    await run(185, 240, names);
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    // Now it is silent, as it promised. Then it returns.
    await run(245, 400, names.slice(1));
    expect(await fleet.ready('a-0')).toBe('True');
    fleet.at(402);
    await fleet.beat('a-0');
    await fleet.streams();
    expect(await fleet.taints('a-0')).toEqual([]);
  });

  describe('returns, and its stream record is lost', () => {
    /** Record or work of the return, in a row of `health`. */
    const loseRecords = (fleet: ControlledFleet) => fleet.tables.forgetChanges('health', Number.MAX_SAFE_INTEGER);

    it('its promise ends at the next tick', async () => {
      const { fleet, run } = await sleepyFleet(3_000);
      await run(5, 200);
      fleet.at(202);
      await fleet.beat('a-0');
      loseRecords(fleet);
      await run(205, 205);
      expect(await fleet.taints('a-0')).toEqual([]);
      // From then on it is not protected.
      await run(210, 300);
      expect(await markedAt(fleet, 'a-0')).toBe(250);
      const ended = (await recordsOf(fleet, 'a-0')).find(({ act }) => act === 'SilenceEnded')!;
      expect(replay(ended)).toMatchObject({ same: true, checked: true });
    });

    it('its promise stays when the silence was an outage of ours', async () => {
      let accepted = true;
      const probe = {
        beat: async () => (accepted ? ({ kind: 'accepted' } as const) : ({ kind: 'failed', reason: 'x' } as const)),
      };
      const { fleet, names } = await settledFleet({ a: 3 }, { probe });
      await fleet.beat(...names);
      await promise(fleet, 'a-0', 3_000);
      accepted = false;
      await fleet.run(5, 120, async () => {});
      accepted = true;
      await fleet.run(125, 300, async (seconds) => {
        if (seconds % 10 === 0) await fleet.beat(...names);
        loseRecords(fleet);
      });
      expect(await fleet.taints('a-0')).toEqual([TAINT]);
    });

    it('its newer promise stays', async () => {
      const { fleet, run } = await sleepyFleet(3_000);
      await run(5, 200);
      fleet.at(202);
      await fleet.beat('a-0');
      loseRecords(fleet);
      await promise(fleet, 'a-0', 6_000);
      await run(205, 215);
      expect(await fleet.taints('a-0')).toEqual([TAINT]);
    });
  });

  it('leaves the eviction queue, also when its own status is not ready', async () => {
    const { fleet, run } = await sleepyFleet(3_000);
    await run(5, 10);
    await fleet.post('a-0', 'False');
    await run(15, 300);
    expect(await fleet.taints('a-0')).toEqual(['not-ready:NoSchedule', TAINT]);
    expect((await fleet.records()).queue).toEqual([]);
  });

  it('has a record of begin and end, which replay', async () => {
    const { fleet, run } = await sleepyFleet(120);
    await run(5, 125);
    const records = (await recordsOf(fleet, 'a-0')).filter(({ act }) => act.startsWith('Silence'));
    expect(records.map(({ act, reason }) => `${act}: ${reason}`)).toEqual([
      'SilencePlanned: no heartbeat is expected until 2026-01-01T00:02:00Z (ferry); the node is not marked before',
      'SilenceEnded: planned silence ended: its time is over; silence is counted from now on',
    ]);
    for (const record of records) expect(replay(record)).toMatchObject({ same: true, checked: true });
  });

  it('is not tainted when the promise comes between the decision and the taint', async () => {
    let promised: (() => Promise<unknown>) | undefined;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      async transact(writes) {
        const run = promised;
        const isTaint = writes.some((write) => write.kind === 'update' && write.set?.['k'] === 2);
        if (run !== undefined && isTaint) {
          promised = undefined;
          await run();
        }
        return items.transact(writes);
      },
    });
    const { fleet } = await settledFleet({ a: 4 }, { between });
    promised = () => promise(fleet, 'a-0', 3_000);
    await fleet.run(5, 300, async (seconds) => {
      if (seconds % 10 === 0) await fleet.beat('a-1', 'a-2', 'a-3');
    });
    expect(promised).toBeUndefined();
    expect(await fleet.taints('a-0')).not.toContain('unreachable:NoExecute');
  });
});
