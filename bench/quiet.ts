/**
 * The load of a quiet fleet: requests and units of ticks in which nothing happens, counted between local mode and its
 * engine. `npm run cost` computes the dollars.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { startEngine } from '../test/support/engine.ts';
import { type Benchmark, type Report, rounded } from './benchmark.ts';
import { startCountingProxy } from './counting-proxy.ts';
import { clientOf, registerMachines } from './heartbeat.ts';
import { startLocalHost } from './local-host.ts';

const MACHINES = 16;
/** Until the registrations have passed through the streams. */
const SETTLE_MS = 8_000;
/** Shorter than the grace period minus the settling time: no node sends heartbeats here, and none may be marked. */
const QUIET_MS = 25_000;

export const quiet: Benchmark = {
  name: 'quiet',
  about: 'requests and units of a fleet in which nothing happens',
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
    } finally {
      client.close();
    }
  } finally {
    await local.stop();
    await proxy.close();
    await engine.stop();
  }
}
