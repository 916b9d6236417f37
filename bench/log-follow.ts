/**
 * What a followed log costs: API, streaming function and the sender of the agent over the memory store, in virtual time.
 * Counted are requests and units of 15 minutes, the longest stream; times four is an hour. The time of a request of the
 * agent in the API is assumed, the held streaming function is paid for its whole time.
 */

import { apiManifest } from '../shared/api/manifest.ts';
import { watchManifest } from '../shared/api/watch/manifest.ts';
import { PRICE_LIST } from '../shared/domain/cost/prices.ts';
import { logCluster } from '../test/support/log-cluster.ts';
import { randomFrom } from '../test/support/seeded.ts';
import { type Benchmark, rounded } from './benchmark.ts';

const STREAM_SECONDS = 900;
const STREAMS_PER_HOUR = 3_600 / STREAM_SECONDS;
/** Lines of 100 bytes per second. */
const RATES = [0, 1, 10, 100, 1_000];
/** Billed duration of a PUT with two writes. Seconds. */
const PUT_SECONDS = 0.012;

export const logFollow: Benchmark = {
  name: 'log-follow',
  about: 'requests, units and dollars of an hour of kubectl logs -f, by lines per second',
  async run(report) {
    for (const linesPerSecond of RATES) report(await followFor(linesPerSecond));
  },
};

async function followFor(linesPerSecond: number) {
  let writeUnits = 0;
  let readUnits = 0;
  const cluster = logCluster({
    onConsumed: (units) => {
      writeUnits += units.writeUnits;
      readUnits += units.readUnits;
    },
  });
  await cluster.addNode('n1');
  await cluster.addPod('web', 'n1');
  const next = randomFrom(1);
  [writeUnits, readUnits] = [0, 0];
  const log = await cluster.read('ann', '?follow=true');
  let requests = 1;
  cluster
    .agent('n1', () => {
      requests += 1;
      return undefined;
    })
    .requested();
  let bytes = 0;
  let lateSecondsMax = 0;
  for (let second = 0; second < STREAM_SECONDS - 15; second += 1) {
    const at = new Date(cluster.time.nowMs()).toISOString();
    const lines = Array.from({ length: linesPerSecond }, () => {
      const line = `${at} INFO request id=${Math.floor(next() * 1e15).toString(36)} path=/items/${Math.floor(next() * 1e4)} status=200`;
      return `${line.padEnd(99, '.')}\n`;
    }).join('');
    if (lines !== '') cluster.output.write(lines);
    bytes += lines.length;
    await cluster.time.pass(1_000);
    lateSecondsMax = Math.max(lateSecondsMax, (bytes - log.text().length) / Math.max(1, lines.length));
  }
  cluster.output.close();
  await cluster.time.pass(5_000);
  const { prices } = PRICE_LIST;
  const gigabytes = (megabytes: number): number => megabytes / 1_024;
  const dollars =
    requests * (prices.httpApiRequest.dollars + prices.lambdaRequest.dollars) +
    requests * PUT_SECONDS * gigabytes(apiManifest.memoryMegabytes) * prices.lambdaGigabyteSecond.dollars +
    prices.lambdaRequest.dollars +
    STREAM_SECONDS * gigabytes(watchManifest.memoryMegabytes) * prices.lambdaGigabyteSecond.dollars +
    writeUnits * prices.writeUnit.dollars +
    readUnits * prices.readUnit.dollars;
  return {
    linesPerSecond,
    complete: log.text().length === bytes,
    secondsOfOutputMissingMax: rounded(lateSecondsMax),
    requestsPerHour: requests * STREAMS_PER_HOUR,
    writeUnitsPerHour: rounded(writeUnits * STREAMS_PER_HOUR),
    readUnitsPerHour: rounded(readUnits * STREAMS_PER_HOUR),
    dollarsPerHour: rounded(dollars * STREAMS_PER_HOUR, 3),
  };
}
