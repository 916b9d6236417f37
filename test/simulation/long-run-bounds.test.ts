/** When a silent node of a long run is due: bounds that the laws compare marks with. */
import { expect, it } from 'vitest';
import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { faultPlan } from '../../simulation/faults/catalogue.ts';
import { ClockSteps } from '../../simulation/long-run/clock-steps.ts';
import { DeployedPolicies } from '../../simulation/long-run/deployed-policies.ts';
import { Heartbeats } from '../../simulation/long-run/heartbeats.ts';
import { MarkBounds } from '../../simulation/long-run/mark-bounds.ts';
import { MIXED_POLICIES } from '../../simulation/long-run/mixed-fleet.ts';
import { SITE_MACHINES, SiteReports } from '../../simulation/long-run/site-reports.ts';
import { virtualTime } from '../../simulation/virtual-time.ts';

const NODE = 0;
const START_MS = Date.UTC(2026, 0, 1);
const at = (seconds: number): number => START_MS + seconds * 1_000;
const PROMISED = 600;
const NOW = 640;
/** Grace period, one period of node-monitor, and the time from a decision to its effect. Seconds. */
const MARKED_AFTER = 40 + 5 + 1.5;

/** A machine of the profile `default` that is silent from the first minute on and has promised to be. */
function silentMachine(): MarkBounds {
  const time = virtualTime(START_MS);
  const clock = new ClockSteps();
  const plan = faultPlan({ seed: 1, startMs: START_MS, endMs: at(3_600), faults: [], nowMs: time.nowMs });
  const heartbeats = new Heartbeats({
    ...{ nodes: 1, seed: 1, startMs: START_MS, plan },
    intervalMsOf: () => 10_000,
    clockAheadMs: () => 0,
  });
  heartbeats.silence(NODE, at(60), at(7_200));
  const policies = new DeployedPolicies(time, MIXED_POLICIES[0]!);
  const bounds = new MarkBounds({ policies, kindOf: () => DEFAULT_PROFILE, nodes: 1, heartbeats, clock, skewMs: 0 });
  bounds.onPromise(NODE, at(PROMISED));
  return bounds;
}

it('a broken promise is due one grace period after its end', () => {
  const seconds = (silentMachine().dueMs(NODE, at(NOW), START_MS) - START_MS) / 1_000;
  // A promise is stored in whole seconds.
  expect(seconds).toBe(PROMISED + 1 + MARKED_AFTER);
});

it('a machine that changed its profile during its promise has the old interval first, as without a promise', () => {
  const bounds = silentMachine();
  bounds.onProfile(NODE, at(PROMISED - 16));
  const seconds = (bounds.dueMs(NODE, at(NOW), START_MS) - START_MS) / 1_000;
  // An answer on its way, and the longest interval of the policy: the machine could not learn the new one.
  expect(seconds).toBe(PROMISED - 16 + 10 + 60 + MARKED_AFTER);
});

it('a withdrawn report stands while its receipt time is earlier than that of the report before it', async () => {
  const time = virtualTime(START_MS);
  const plan = faultPlan({ seed: 1, startMs: START_MS, endMs: at(3_600), faults: [], nowMs: time.nowMs });
  let behindMs = 0;
  const reports = new SiteReports({
    ...{ time, plan, nodes: SITE_MACHINES, troubles: [], intervalMs: 10_000, items: memoryItemStore() },
    random: () => () => 0.1,
    nameOf: (node) => `m-${node}`,
    nodeOf: (name) => Number(name.slice(2)),
    receiptMs: (_node, atMs) => atMs - behindMs,
    isSilent: () => false,
  });
  const isAccused = async (seconds: number): Promise<boolean> => {
    await time.run(at(seconds), () => false);
    return reports.accusedSinceMs(NODE + 1, START_MS) !== undefined;
  };
  await time.run(at(10), () => false);
  reports.onSilence(NODE + 1);
  expect(await isAccused(20)).toBe(true);
  behindMs = 60_000;
  reports.onReturn(NODE + 1);
  expect(await isAccused(50)).toBe(true);
  behindMs = 0;
  expect(await isAccused(80)).toBe(false);
});
