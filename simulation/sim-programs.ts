/**
 * The code that runs in a simulated process: real controllers, API and heartbeat over faulty tables, EC2 and clocks.
 */
import type { MemoryCloud } from '../demo/ec2/cloud.ts';
import { readYaml } from '../functions/api/read-yaml.ts';
import { everyProbe, type Probe } from '../functions/node-monitor/probes.ts';
import { composeSystem } from '../server/system.ts';
import { refusalsAdded } from '../shared/access/refusal-store.ts';
import { refusedRequests } from '../shared/access/refused-requests.ts';
import {
  API_LIMITS,
  HEARTBEAT_LIMITS,
  type RequestLimits,
  type RequestThrottle,
  requestThrottle,
} from '../shared/access/request-throttle.ts';
import type { RandomSource } from '../shared/clock.ts';
import type { Log } from '../shared/observability/log.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import { simulationAuthenticator } from './access.ts';
import { createEndpoint } from './endpoint.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import { faultyCloud } from './faults/faulty-cloud.ts';
import type { Send } from './faults/faulty-network.ts';
import type { FaultyParts } from './faults/faulty-parts.ts';
import { faultyStore } from './faults/faulty-store.ts';
import type { FaultyTicks } from './faults/faulty-ticks.ts';
import type { Process, Program } from './faults/processes.ts';
import { throttledFor } from './faults/throttled-items.ts';
import { costlyHeartbeats, costlyYaml } from './greedy-identity.ts';
import { SIMULATED_URL } from './heartbeat-doors.ts';
import { ownProbe } from './own-probe.ts';
import { seededUuid } from './seeded-random.ts';
import type { SimChecks } from './sim-checks.ts';
import type { SimSetup } from './sim-setup.ts';

const NO_NAMES: ReadonlySet<string> = new Set();

export interface SimPrograms {
  compose(process: Process): Program;
  storeOf(process: Process, plan: FaultPlan, fraction: () => number): ItemStore;
  /** The store as a planted bug changes it. */
  planted(items: ItemStore, process: Process): ItemStore;
  logOf(process: Process): Log;
}

/** `network`: numbers of the calls to tables and EC2. `send`: the way of the probe to the endpoint. */
export function simPrograms(
  setup: SimSetup,
  checks: SimChecks,
  {
    network,
    send,
    ticks,
    markParts,
  }: {
    readonly network: () => number;
    readonly send: Send;
    readonly ticks: FaultyTicks;
    readonly markParts: FaultyParts;
  },
): SimPrograms {
  const { seed, time, plan, policy, tables, recent, options } = setup;
  const { state, coverage, onFault } = checks;
  const { plant = {} } = options;
  const hasUrl = setup.parts.includes('heartbeatUrl');
  const overlooking = { fromMs: Number.NEGATIVE_INFINITY };
  const fraction = setup.random('code');
  const source: RandomSource = { fraction, uuid: () => seededUuid(fraction) };
  const cloud = observedCloud(setup, checks);

  const planted = (items: ItemStore, process: Process): ItemStore => plant.items?.(items, process) ?? items;
  const storeOf = (process: Process, faults: FaultPlan, calls: () => number): ItemStore =>
    faultyStore(process, {
      tables: throttledFor(tables, () => state.poison?.throttled ?? NO_NAMES),
      recent,
      time,
      plan: faults,
      fraction: calls,
      onEffect: (by) => {
        state.writer = { name: by.name, who: by.who, sinceMs: by.sinceMs };
      },
    });
  const logOf = (process: Process): Log => ({
    debug: () => undefined,
    info: (message, fields) => coverage.onLog(message, fields),
    warn: (message, fields) => coverage.onLog(message, fields),
    error: (message, fields) => {
      const error = fields?.['error'];
      onFault(process.name, [error instanceof Error ? error : new Error(message)]);
    },
  });

  function compose(process: Process): Program {
    const { clock } = process;
    const items = planted(storeOf(process, plan, network), process);
    const probes = [
      ownProbe(send, clock, time.sleep),
      ...(hasUrl ? [ownProbe(send, clock, time.sleep, { door: 'url' })] : []),
    ];
    const log = logOf(process);
    const authenticator = plant.authenticator?.(simulationAuthenticator) ?? simulationAuthenticator;
    const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
    const tickQueue = plant.tickQueue?.(ticks.queueOf(process)) ?? ticks.queueOf(process);
    const spend = async (ms: number): Promise<void> => {
      checks.shares.onSpent(process, ms);
      await time.sleep(ms);
      process.busyMs += ms;
    };
    const busyMs = (): number => process.busyMs;
    const onRefused = refusedRequests({ log, store: refusalsAdded(items), noteFault: () => undefined });
    const heartbeatThrottle = (): RequestThrottle => requestThrottle(limitsOf(HEARTBEAT_LIMITS), { busyMs, onRefused });
    const { api, heartbeat, controllers } = composeSystem({
      items,
      authenticator,
      clock,
      random: source,
      policy: process.policy,
      log,
      meter: { add: () => undefined },
      pause: (milliseconds) => time.sleep(milliseconds),
      tickQueue,
      partQueue: markParts.queueOf(process),
      waker: ticks.wakerOf(process),
      probe: observedProbe(everyProbe(plant.probes?.(probes) ?? probes), checks),
      cloud: faultyCloud(process, { cloud, time, plan, fraction: network, periodMs, overlooking }),
      api: { readYaml: costlyYaml(readYaml, spend), limits: limitsOf(API_LIMITS), busyMs },
      heartbeat: {
        throttle: costlyHeartbeats(heartbeatThrottle(), spend, clock),
        batchThrottle: heartbeatThrottle(),
        startTimeLimit: (milliseconds) => ({ reached: time.sleep(milliseconds), cancel: () => undefined }),
      },
    });
    return {
      clock,
      controllers: plant.controllers?.(controllers, tickQueue) ?? controllers,
      endpoint: createEndpoint({ api, heartbeat, clock, seed, heartbeatUrl: hasUrl ? SIMULATED_URL : undefined }),
    };
  }

  const limitsOf = (limits: RequestLimits): RequestLimits => plant.limits?.(limits) ?? limits;

  return { compose, storeOf, planted, logOf };
}

/** EC2, with each request to detach a volume shown to its law. */
const observedCloud = ({ cloud }: SimSetup, { volumes }: SimChecks): MemoryCloud => ({
  ...cloud,
  detachVolume(request) {
    volumes.onDetach(request.volumeId);
    return cloud.detachVolume(request);
  },
});

/** A probe, with each result shown to the law about shares. */
const observedProbe = (probe: Probe, { shares }: SimChecks): Probe => ({
  async beat() {
    const outcome = await probe.beat();
    shares.onProbe(outcome);
    return outcome;
  },
});
