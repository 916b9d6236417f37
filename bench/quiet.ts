/**
 * What a quiet fleet costs: the requests and units of ticks in which nothing happens, counted between local mode and its
 * engine, and the dollars that these and a beat come to at list price.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { PRICES, SECONDS_A_MONTH } from '../shared/domain/prices.ts';
import { startEngine } from '../test/support/engine.ts';
import { type Benchmark, type Report, rounded } from './benchmark.ts';
import { startCountingProxy } from './counting-proxy.ts';
import { clientOf, registerMachines } from './heartbeat.ts';
import { startLocalHost } from './local-host.ts';

const MACHINES = 16;
/** Until the registrations have gone through the streams. */
const SETTLE_MS = 8_000;
/** Shorter than the grace period less the settling: nobody beats here, and nobody may be marked. */
const QUIET_MS = 25_000;
const PERIOD_SECONDS = 5;
const BEAT_SECONDS = 10;
/**
 * Assumed, because a local millisecond is no Lambda millisecond: billed time of a beat and of a tick, memory as deployed.
 */
const BEAT_BILLED_SECONDS = 0.01;
const BEAT_GIGABYTES = 0.25;
const TICK_BILLED_SECONDS = 0.1;
const TICK_GIGABYTES = 0.5;
/** A tick's message: a twelfth of two batches sent, a receive, a delete; and idle receives of five pollers, three a minute. */
const SQS_REQUESTS_A_TICK = 2 / 12 + 1 + 1 + (5 * 3) / 12;

/** Of the template: the probe's credential, and what signs watch tickets. */
const SECRETS = 2;

export const quiet: Benchmark = {
  name: 'quiet',
  about: 'requests, units and dollars of a fleet in which nothing happens',
  run: measureQuiet,
};

async function measureQuiet(report: Report): Promise<void> {
  const engine = await startEngine();
  const proxy = await startCountingProxy(engine.endpoint);
  const local = await startLocalHost({ dynamodbEndpoint: proxy.endpoint });
  try {
    const client = clientOf(local, MACHINES);
    try {
      await registerMachines(client, MACHINES);
      await pause(SETTLE_MS);
      const before = await local.counters();
      proxy.take();
      await pause(QUIET_MS);
      const { requests, readUnits, writeUnits } = proxy.take();
      const after = await local.counters();
      const ran = (name: string): number =>
        (after.functions[name]?.invocations ?? 0) - (before.functions[name]?.invocations ?? 0);
      const ticks = ran('node-monitor');
      const probes = ran('heartbeat');
      const invocations = Object.keys(after.functions).reduce((sum, name) => sum + ran(name), 0);
      report({
        machines: MACHINES,
        ticks,
        readUnitsPerTick: rounded(readUnits / ticks),
        // The probe's own beat is counted with the tick that sends it.
        writeUnitsPerTick: rounded(writeUnits / ticks),
        probesPerTick: rounded(probes / ticks),
        invocationsPerTick: rounded(invocations / ticks),
        ...Object.fromEntries(
          Object.entries(requests).map(([operation, count]) => [
            `requestsPerTick:${operation}`,
            rounded(count / ticks),
          ]),
        ),
      });
      reportDollars(report, {
        readUnits: readUnits / ticks,
        writeUnits: writeUnits / ticks,
        invocations: invocations / ticks,
        probes: probes / ticks,
        controllers: ran('evictor') > 0 ? 2 : 1,
      });
    } finally {
      client.close();
    }
  } finally {
    await local.stop();
    await proxy.close();
    await engine.stop();
  }
}

function reportDollars(
  report: Report,
  tick: { readUnits: number; writeUnits: number; invocations: number; probes: number; controllers: number },
): void {
  const beatDollars =
    PRICES.httpApiRequest +
    PRICES.lambdaRequest +
    BEAT_BILLED_SECONDS * BEAT_GIGABYTES * PRICES.lambdaGigabyteSecond +
    PRICES.writeUnit;
  const tickDollars =
    tick.readUnits * PRICES.readUnit +
    tick.writeUnits * PRICES.writeUnit +
    tick.invocations * PRICES.lambdaRequest +
    tick.controllers * TICK_BILLED_SECONDS * TICK_GIGABYTES * PRICES.lambdaGigabyteSecond +
    tick.probes * PRICES.httpApiRequest +
    tick.controllers * SQS_REQUESTS_A_TICK * PRICES.sqsRequest;
  const ticksAMonth = SECONDS_A_MONTH / PERIOD_SECONDS;
  const schedulesAMonth = (tick.controllers * 2 * SECONDS_A_MONTH) / 60;
  report({
    dollarsPerMillionBeats: rounded(beatDollars * 1e6),
    dollarsPerNodeMonth: rounded((beatDollars * SECONDS_A_MONTH) / BEAT_SECONDS),
    dollarsPerMillionTicks: rounded(tickDollars * 1e6),
    dollarsPerMonthOfTicks: rounded(tickDollars * ticksAMonth),
    dollarsPerMonthOfSchedulesAndSecrets: rounded(
      schedulesAMonth * PRICES.schedulerInvocation + SECRETS * PRICES.secretMonth,
    ),
  });
}
