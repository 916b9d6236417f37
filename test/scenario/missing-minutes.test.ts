/**
 * Schedules, queue and event source of local mode, as the template describes them, on virtual time: EventBridge
 * Scheduler misses minutes and fires twice in others, and node-monitor keeps ticking over its chain of messages.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { functionUrlIds, planLocalMode } from '../../aws-local/assembly/plan.ts';
import type { Template } from '../../aws-local/assembly/template.ts';
import type { InvocationOutcome, LocalFunction } from '../../aws-local/functions/local-function.ts';
import { LocalQueue, type QueueMessage } from '../../aws-local/queues/queue.ts';
import { startQueueSource } from '../../aws-local/queues/queue-source.ts';
import { firingOffsetsMs, startScheduler } from '../../aws-local/schedule/scheduler.ts';
import { handleTickMessages } from '../../functions/node-monitor/tick-message.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { synthesise } from '../cdk/synthesised.ts';
import { START_MS, settledFleet } from '../support/controlled-fleet.ts';

const MINUTE_MS = 60_000;
const MINUTES = 16;
/** Half of the minutes are missing, and a quarter of the others are doubled. */
const TIMING = { kind: 'aws', seed: 5, missing: 0.5, doubled: 0.25 } as const;
const BEAT_MS = 10_000;
const LOOK_MS = 100;
/** The grace period and one period. */
const MARKED_WITHIN_SECONDS = 45;
const NODES = 6;

const template = synthesise().toJSON() as Template;
const plan = planLocalMode(
  { stackName: 'Test', template, assetPath: () => '/no/code' },
  {
    ...{ region: 'us-east-1', accountId: '000000000000', apiUrl: 'https://127.0.0.1:1', parameters: {} },
    functionUrls: Object.fromEntries(functionUrlIds(template).map((id) => [id, 'https://127.0.0.1:2/'])),
  },
);
const watchdog = plan.schedules.find(({ target }) => target.kind === 'queue')!;

/** How often the watchdog fires in each minute. */
const firings = Array.from(
  { length: MINUTES },
  (_, minute) => firingOffsetsMs(TIMING, watchdog.logicalId, START_MS + minute * MINUTE_MS).length,
);

beforeEach(() => {
  vi.useFakeTimers({ now: START_MS, toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The queue of node-monitor's ticks, its schedules and its event source. `isLost`: of a message that is sent. */
async function localTicks(isLost: (nowMs: number) => boolean = () => false) {
  const nowMs = () => Date.now();
  const sourcePlan = plan.queueSources.find(({ queueId }) => queueId === queueIdOf())!;
  const queuePlan = plan.queues.find(({ logicalId }) => logicalId === queueIdOf())!;
  const queue = new LocalQueue({
    name: queuePlan.queueName,
    delaySeconds: queuePlan.delaySeconds,
    visibilityTimeoutSeconds: queuePlan.visibilityTimeoutSeconds,
    retentionSeconds: queuePlan.retentionSeconds,
  });
  const sentSlots: number[] = [];
  const { fleet, names } = await settledFleet(
    { a: NODES / 2, b: NODES / 2 },
    {
      probe: { beat: async () => ({ kind: 'accepted' }) },
      tickQueue: {
        async send(slot, { delaySeconds }) {
          sentSlots.push(slot);
          if (!isLost(nowMs())) queue.send(JSON.stringify({ slot }), nowMs(), { delaySeconds });
        },
        async postpone(receiptHandle, { delaySeconds }) {
          queue.changeVisibility(receiptHandle, delaySeconds, nowMs());
        },
      },
    },
  );
  const toNow = () => fleet.at((nowMs() - START_MS) / 1_000);
  const fn = {
    async invoke(event: { readonly Records: readonly QueueMessage[] }): Promise<InvocationOutcome> {
      toNow();
      const response = await handleTickMessages(event as never, {
        log: { debug() {}, info() {}, warn() {}, error() {} },
        meter: { add() {} },
        clock: { nowMs },
        queue: { postpone: () => Promise.reject(new Error('no tick may fail')) },
        onMessage: (kind) => fleet.controllers.onTickMessage(kind),
      });
      return { kind: 'returned', payload: JSON.stringify(response) };
    },
  } as unknown as LocalFunction;
  const source = startQueueSource({
    ...{ plan: sourcePlan, queue, queueArn: queuePlan.arn, fn, region: plan.region, nowMs },
  });
  const scheduler = startScheduler({
    schedules: [watchdog],
    timing: TIMING,
    nowMs,
    targets: { sendToQueue: (_, body) => void queue.send(body, nowMs()), invoke: () => {} },
  });
  const stop = async () => {
    scheduler.stop();
    await source.stop();
  };
  return { fleet, names, sentSlots, scheduler, toNow, stop };
}

const queueIdOf = (): string => (watchdog.target.kind === 'queue' ? watchdog.target.queueId : '');

/** Heartbeats of all machines until each one's last, and the seconds from that to Ready=Unknown. */
async function marksOf(
  { fleet, names, toNow }: Awaited<ReturnType<typeof localTicks>>,
  lastBeatMsOf: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, number>> {
  const beat = async (name: string): Promise<void> => {
    if (Date.now() > (lastBeatMsOf.get(name) ?? Number.POSITIVE_INFINITY)) return;
    setTimeout(() => void beat(name), BEAT_MS);
    beats.set(name, Date.now());
    toNow();
    await fleet.beat(name);
  };
  const beats = new Map<string, number>();
  const marks = new Map<string, number>();
  const look = async (): Promise<void> => {
    setTimeout(() => void look(), LOOK_MS);
    for (const name of names) {
      if (marks.has(name) || (await fleet.ready(name)) !== 'Unknown') continue;
      marks.set(name, (Date.now() - beats.get(name)!) / 1_000);
    }
  };
  for (const [index, name] of names.entries()) setTimeout(() => void beat(name), index * 1_300);
  void look();
  await vi.advanceTimersByTimeAsync(MINUTES * MINUTE_MS);
  return marks;
}

describe('local mode with schedules that miss minutes and fire twice', () => {
  it('marks machines without heartbeats on time, and no other', async () => {
    // Two minutes in a row without the watchdog, and minutes with two.
    expect(firings.join('')).toMatch(/00/);
    expect(firings).toContain(2);
    const ticks = await localTicks();
    const [first, second] = ticks.names;
    const lastBeats = new Map([
      [first!, START_MS + 3 * MINUTE_MS],
      [second!, START_MS + 9 * MINUTE_MS],
    ]);
    const marks = await marksOf(ticks, lastBeats);
    await ticks.stop();
    expect([...marks.keys()]).toEqual([first, second]);
    expect(Math.min(...marks.values())).toBeGreaterThan(defaultPolicy.nodeMonitorGracePeriodSeconds);
    expect(Math.max(...marks.values())).toBeLessThanOrEqual(MARKED_WITHIN_SECONDS + LOOK_MS / 1_000);
    // One message per slot, from the first to the last.
    expect(new Set(ticks.sentSlots).size).toBe(ticks.sentSlots.length);
    expect(ticks.sentSlots.length).toBeGreaterThanOrEqual((MINUTES * MINUTE_MS) / 5_000);
  });

  it('starts ticks again when a message of the chain was lost before a missing minute, and marks no live machine', async () => {
    const missing = firings.findIndex((count, minute) => minute > 2 && count === 0);
    const present = firings.findIndex((count, minute) => minute > missing && count > 0);
    const lostMs = START_MS + missing * MINUTE_MS;
    let losesOne = true;
    const ticks = await localTicks((nowMs) => {
      const isLost = losesOne && nowMs >= lostMs;
      if (isLost) losesOne = false;
      return isLost;
    });
    const [silent] = ticks.names;
    const marks = await marksOf(ticks, new Map([[silent!, lostMs]]));
    await ticks.stop();
    const periodMs = defaultPolicy.nodeMonitorPeriodSeconds * 1_000;
    const gaps = ticks.sentSlots.map((slot, index) => slot - (ticks.sentSlots[index - 1] ?? slot));
    expect(Math.max(...gaps) * periodMs).toBeGreaterThan(MINUTE_MS);
    expect([...marks.keys()]).toEqual([silent]);
    // The watchdog of the next minute that has one, and a new grace period.
    const restartMs = START_MS + (present + 1) * MINUTE_MS;
    expect(marks.get(silent!)! * 1_000).toBeLessThan(restartMs - lostMs + (MARKED_WITHIN_SECONDS + 5) * 1_000);
  });
});
