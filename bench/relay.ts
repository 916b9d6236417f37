/**
 * How the heartbeats of a site come together in a relay: two hours of virtual time with the relay itself, from machines
 * that start at random times. `npm run cost` has the units and dollars of batches.
 */
import { HeartbeatRelay } from '../agent/app/relay.ts';
import type { KubeApi } from '../agent/ports/kube-api.ts';
import { jitteredMs } from '../agent/rules/lease.ts';
import { collectMs, relayWaitMs } from '../agent/rules/relay-use.ts';
import type { LeaseBatch, LeaseBatchItem } from '../shared/fleet/nodes/lease-batch.ts';
import { silentLog } from '../test/support/agent-api.ts';
import { randomFrom } from '../test/support/seeded.ts';
import { SteppedTime } from '../test/support/stepped-time.ts';
import { type Benchmark, percentile, type Report, readOptions, rounded, wholeNumbers } from './benchmark.ts';

const SITES = [25, 100];
const INTERVALS_SECONDS = [10, 60];
const COLLECTING_MS = 7_200_000;
/** From then on the heartbeats of a site are one batch. */
const CONVERGED_AFTER_MS = 3_600_000;
/** The cluster's answer to a batch. Milliseconds. */
const ASSUMED_ANSWER_MS = 100;

export const relay: Benchmark = {
  name: 'relay',
  about: 'heartbeats of 25 and 100 machines through a relay: batches and delay (virtual time)',
  usage: '[--machines 25,100]',
  smallest: ['--machines', '3'],
  async run(report, words) {
    const { machines } = readOptions(words, { machines: { type: 'string' } });
    for (const count of wholeNumbers('machines', machines, { least: 1, most: 100, otherwise: SITES })) {
      for (const intervalSeconds of INTERVALS_SECONDS) await collect(count, intervalSeconds, report);
    }
  },
};

const beatOf = (path: string): LeaseBatchItem => ({ method: 'PUT', path, token: '', body: '' });

async function collect(machines: number, intervalSeconds: number, report: Report): Promise<void> {
  const time = new SteppedTime(0);
  const random = randomFrom(machines);
  const batches: { readonly atMs: number; readonly items: number }[] = [];
  const api: KubeApi = {
    async send({ body }) {
      const { items } = body as LeaseBatch;
      batches.push({ atMs: time.monotonicMs(), items: items.length });
      await time.sleep(ASSUMED_ANSWER_MS);
      return {
        kind: 'answered',
        status: 200,
        body: { kind: 'LeaseBatch', items: items.map(() => ({ status: 200, body: {} })) },
      };
    },
    reconnect: () => {},
  };
  const site = new HeartbeatRelay({ api, time, log: silentLog, meter: { count: () => {} } });
  const beats: { readonly atMs: number; readonly delayMs: number; readonly isRelayed: boolean }[] = [];
  const machine = async (path: string): Promise<void> => {
    await time.sleep(intervalSeconds * 1_000 * random());
    for (let acceptedFromMs = time.monotonicMs(); ; ) {
      const sentAtMs = time.monotonicMs();
      const waitMs = relayWaitMs(sentAtMs - acceptedFromMs, intervalSeconds * 1_000);
      const isRelayed = waitMs !== undefined;
      acceptedFromMs = sentAtMs;
      if (isRelayed) await site.relay(beatOf(path), collectMs(waitMs, intervalSeconds * 1_000));
      else await time.sleep(ASSUMED_ANSWER_MS);
      beats.push({ atMs: sentAtMs, delayMs: time.monotonicMs() - sentAtMs - ASSUMED_ANSWER_MS, isRelayed });
      await time.sleep(jitteredMs(intervalSeconds * 1_000, random()));
    }
  };
  for (let index = 0; index < machines; index += 1) void machine(`n${index}`);
  await time.pass(COLLECTING_MS);
  const oneBatch = batches.find(({ items }) => items === machines);
  const delays = beats.filter(({ atMs }) => atMs >= CONVERGED_AFTER_MS).map(({ delayMs }) => delayMs);
  const later = batches.filter(({ atMs }) => atMs >= CONVERGED_AFTER_MS).map(({ items }) => items);
  report({
    machines,
    intervalSeconds,
    secondsToOneBatch: oneBatch === undefined ? undefined : rounded(oneBatch.atMs / 1_000),
    // A machine counts its interval from the answer.
    meanIntervalSeconds: rounded(((COLLECTING_MS - CONVERGED_AFTER_MS) * machines) / delays.length / 1_000),
    directShare: rounded(beats.filter(({ isRelayed }) => !isRelayed).length / beats.length),
    heartbeatsPerBatch: rounded(later.reduce((sum, items) => sum + items, 0) / later.length),
    delayMsP50: rounded(percentile(delays, 0.5)),
    delayMsP99: rounded(percentile(delays, 0.99)),
    delayMsP99FromStart: rounded(
      percentile(
        beats.map(({ delayMs }) => delayMs),
        0.99,
      ),
    ),
  });
}
