import { describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { nodeMonitorReplay } from '../../shared/fleet/mark-decisions.ts';
import { type ReceivedReport, storeReport } from '../../shared/fleet/witness-report-store.ts';
import { START_MS, settledFleet } from '../../test/support/controlled-fleet.ts';
import { replayed } from '../../test/support/replayed.ts';
import type { ProbeOutcome } from './probes.ts';

type Fleet = Awaited<ReturnType<typeof settledFleet>>['fleet'];

const ACCEPTED = { kind: 'accepted' } as const;
const FAILED = { kind: 'failed', reason: 'answered 503' } as const;
const SITE = ['a-0', 'a-1', 'a-2', 'a-3', 'a-4', 'a-5'];
const DEAD = 'a-5';

/** A site of six machines. The last one falls silent after its heartbeat at 20 s. */
async function site(options: Parameters<typeof settledFleet>[1] = {}) {
  const { fleet } = await settledFleet({ a: SITE.length }, options);
  await fleet.run(0, 20, async (seconds) => seconds % 10 === 0 && fleet.beat(...SITE));
  return fleet;
}

const report = (fleet: Fleet, reporter: string, role: ReceivedReport['role'], ...names: string[]) =>
  storeReport(fleet.tables, { reporter, role, names, nowMs: fleet.nowMs() }, () => true);

/** Runs the ticks from one second to another. The machines but for the dead one send heartbeats each ten seconds. */
async function tickOn(fleet: Fleet, from: number, to: number, pause?: (milliseconds: number) => Promise<unknown>) {
  const controllers = fleet.makeControllers(fleet.tables, pause);
  for (let seconds = from; seconds <= to; seconds += 5) {
    fleet.at(seconds);
    if (seconds % 10 === 0) await fleet.beat(...SITE.filter((name) => name !== DEAD));
    await controllers.tickNodeMonitor(fleet.slot());
  }
}

/** A pause that lets the virtual time pass; `meanwhile` happens just before its end. */
const passing =
  (fleet: Fleet, meanwhile: () => Promise<unknown> = async () => undefined) =>
  async (milliseconds: number): Promise<void> => {
    fleet.at(fleet.seconds() + milliseconds / 1_000 - 0.001);
    await meanwhile();
    fleet.at(fleet.seconds() + 0.001);
  };

async function accuse(fleet: Fleet, hubAt: number, machineAt: number): Promise<void> {
  fleet.at(hubAt);
  await report(fleet, 'a-0', 'hub', DEAD);
  fleet.at(machineAt);
  await report(fleet, 'a-1', 'machine', DEAD);
}

const markOf = async (fleet: Fleet) => {
  const about = { kind: 'Node', name: DEAD } as const;
  const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 10, about });
  return decisions.find(({ record }) => record.act === 'MarkUnknown')?.record;
};

const markedAt = async (fleet: Fleet): Promise<number | undefined> => {
  const { markedAtMs } = (await fleet.health(DEAD)) ?? {};
  return markedAtMs === undefined ? undefined : (markedAtMs - START_MS) / 1_000;
};

describe('a silent machine that a relay and a second machine report', () => {
  it('is marked eight seconds after both agree, and not before its heartbeat is missing, between two ticks', async () => {
    const fleet = await site();
    await accuse(fleet, 23, 24.5);
    await tickOn(fleet, 25, 35, passing(fleet));
    // 14 s after its last heartbeat, more than 8 s after both agreed, and up to 0.05 s for others that are due then.
    expect(await markedAt(fleet)).toBeCloseTo(34.05, 3);
    const event = (await fleet.events('NodeNotReady'))[0];
    expect(event).toMatchObject({
      message: 'Node a-5 status is now: NodeNotReady (silent on its site for a-0 and a-1)',
    });
    expect(fleet.metrics.filter(({ name }) => name === 'marked_nodes_by_witnesses')).toMatchObject([{ value: 1 }]);
    const decision = await markOf(fleet);
    expect(decision?.reason).toBe(
      'No heartbeat or status for 14.1 s (grace period 8 s); grace period shortened: reported as silent on its site by ' +
        'a-0 (relay) since 11.1 s and a-1 since 9.6 s; 1 of 6 nodes in its zone are not ready',
    );
    expect(replayed(decision!, nodeMonitorReplay)).toEqual(decision!.outcome);
  });

  it('is marked by the next tick without a wait between ticks', async () => {
    const fleet = await site();
    await accuse(fleet, 23, 24.5);
    await tickOn(fleet, 25, 40);
    expect(await markedAt(fleet)).toBe(35);
  });

  it('is not marked when a heartbeat arrives before the look', async () => {
    const fleet = await site();
    await accuse(fleet, 23, 24.5);
    await tickOn(
      fleet,
      25,
      60,
      passing(fleet, () => fleet.beat(DEAD)),
    );
    expect(await fleet.ready(DEAD)).toBe('True');
  });

  it('is not marked when a report is withdrawn before the look', async () => {
    const fleet = await site();
    await accuse(fleet, 23, 24.5);
    await tickOn(
      fleet,
      25,
      55,
      passing(fleet, () => report(fleet, 'a-0', 'hub')),
    );
    expect(await fleet.ready(DEAD)).toBe('True');
    await tickOn(fleet, 60, 65);
    expect(await markedAt(fleet)).toBe(65);
  });

  it('has its full grace period while more than a third of the zone is reported, and the decision says so', async () => {
    const fleet = await site();
    await accuse(fleet, 23, 24.5);
    await tickOn(fleet, 25, 40);
    fleet.at(41);
    await report(fleet, 'a-0', 'hub', 'a-3', 'a-4', DEAD);
    await report(fleet, 'a-1', 'machine', DEAD);
    expect(await markedAt(fleet)).toBe(35);
    const other = await site();
    other.at(23);
    await report(other, 'a-0', 'hub', 'a-3', 'a-4', DEAD);
    await report(other, 'a-1', 'machine', DEAD);
    await tickOn(other, 25, 45, passing(other));
    other.at(46);
    await report(other, 'a-0', 'hub', 'a-3', 'a-4', DEAD);
    await report(other, 'a-1', 'machine', DEAD);
    await tickOn(other, 50, 65, passing(other));
    expect(await markedAt(other)).toBe(65);
    const decision = await markOf(other);
    expect(decision?.reason).toContain(
      'grace period not shortened: 3 of 6 machines of its zone were reported as silent',
    );
  });

  it('has its full grace period when a heartbeat of ours failed since its last one, and the decision says so', async () => {
    const outcomes: ProbeOutcome[] = [];
    const fleet = await site({ probe: { beat: async () => outcomes.pop() ?? ACCEPTED } });
    await accuse(fleet, 23, 24.5);
    outcomes.push(FAILED);
    await tickOn(fleet, 25, 40, passing(fleet));
    expect(await markedAt(fleet)).toBeUndefined();
    await accuse(fleet, 41, 42);
    outcomes.push(FAILED);
    await tickOn(fleet, 45, 60, passing(fleet));
    expect(await markedAt(fleet)).toBeUndefined();
    outcomes.push(FAILED);
    await tickOn(fleet, 65, 65, passing(fleet));
    expect(await markedAt(fleet)).toBe(65);
    const decision = await markOf(fleet);
    expect(decision?.reason).toContain(
      'grace period not shortened: our own ticks or heartbeats failed; reported as silent on its site by a-0 (relay)',
    );
    expect(replayed(decision!, nodeMonitorReplay)).toEqual(decision!.outcome);
  });

  it('has its full grace period when our own heartbeat fails before the look, although the next ones do not', async () => {
    let outcome: ProbeOutcome = ACCEPTED;
    const fleet = await site({ probe: { beat: async () => outcome } });
    const controllers = fleet.makeControllers(fleet.tables, async (milliseconds) => {
      fleet.at(fleet.seconds() + milliseconds / 1_000);
      outcome = FAILED;
    });
    await accuse(fleet, 23, 24.5);
    await tickOn(fleet, 25, 25);
    fleet.at(30);
    await fleet.beat(...SITE.filter((name) => name !== DEAD));
    await controllers.tickNodeMonitor(fleet.slot());
    expect(fleet.seconds()).toBeCloseTo(34.05, 3);
    expect(await markedAt(fleet)).toBeUndefined();
    outcome = ACCEPTED;
    await tickOn(fleet, 35, 65);
    expect(await markedAt(fleet)).toBe(65);
  });

  it('has its full grace period when a tick was missing since its last heartbeat: an outage then is not seen', async () => {
    const fleet = await site({ probe: { beat: async () => ACCEPTED } });
    await accuse(fleet, 23, 24.5);
    await tickOn(fleet, 30, 55, passing(fleet));
    expect(await markedAt(fleet)).toBeUndefined();
    await tickOn(fleet, 60, 65);
    expect(await markedAt(fleet)).toBe(65);
  });

  it('has its full grace period when witnesses are off', async () => {
    const fleet = await site({ policy: { witnessGraceSeconds: 0 } });
    await accuse(fleet, 23, 24.5);
    await tickOn(fleet, 25, 65, passing(fleet));
    expect(await markedAt(fleet)).toBe(65);
  });
});

describe('a machine that sends heartbeats', () => {
  it('is never marked, whoever reports it after each of them', async () => {
    const fleet = await site();
    let beats = 1;
    /** A relay delays each heartbeat as long as it can. Seconds. */
    const apart = 13.9;
    /** The heartbeats until then, each with new reports a moment later. */
    const liveUntil = async (untilSeconds: number): Promise<void> => {
      for (; 20 + beats * apart <= untilSeconds; beats += 1) {
        fleet.at(20 + beats * apart);
        await fleet.beat(...SITE);
        await Promise.all([report(fleet, 'a-0', 'hub'), report(fleet, 'a-1', 'machine')]);
        fleet.at(20 + beats * apart + 0.1);
        await Promise.all([report(fleet, 'a-0', 'hub', DEAD), report(fleet, 'a-1', 'machine', DEAD)]);
      }
      fleet.at(untilSeconds);
    };
    const controllers = fleet.makeControllers(fleet.tables, (ms) => liveUntil(fleet.seconds() + ms / 1_000));
    for (let seconds = 25; seconds <= 300; seconds += 5) {
      await liveUntil(seconds);
      await controllers.tickNodeMonitor(fleet.slot());
    }
    expect(await markedAt(fleet)).toBeUndefined();
  });
});

it('reports that nothing reads any more are removed', async () => {
  const fleet = await site();
  fleet.at(21);
  await report(fleet, 'a-0', 'hub', DEAD);
  const rows = async () => (await fleet.tables.query({ table: 'control', pk: 'witnesses', consistent: true })).items;
  await tickOn(fleet, 25, 80);
  expect(await rows()).toHaveLength(1);
  await tickOn(fleet, 85, 95);
  expect(await rows()).toEqual([]);
});
