/**
 * The whole system on virtual time: real API, heartbeat and controllers over a real store; machines and clock are
 * simulated.
 */
import { type MemoryCloud, memoryCloud } from '../demo/ec2/cloud.ts';
import { leaseProbe } from '../functions/node-monitor/probes.ts';
import { composeSystem } from '../server/system.ts';
import type { Clock, RandomSource } from '../shared/clock.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { Log, Meter } from '../shared/observability/log.ts';
import { slotOf } from '../shared/ticks/tick.ts';
import { PROBE, probeCredentials, simulationAuthenticator } from './access.ts';
import { type ClusterView, clusterView } from './cluster-view.ts';
import { createEndpoint, type Endpoint } from './endpoint.ts';
import type { RecordedStore } from './recorded-store.ts';
import { seededFraction, seededUuid } from './seeded-random.ts';
import { SIMULATED_REGION } from './simulated-instance.ts';
import { createStreams, type Streams } from './streams.ts';

/** The endpoint of the probe; nothing is sent to it. */
const PROBE_ORIGIN = 'https://endpoint.invalid';
const ACCOUNT_ID = '123456789012';
/** The limit for the passes of the scheduler in one instant. */
const PASSES_MAX = 1_000;

export interface World {
  readonly store: RecordedStore;
  readonly policy: Policy;
  readonly endpoint: Endpoint;
  readonly view: ClusterView;
  readonly streams: Streams;
  readonly clock: Clock;
  /** Errors the system logged since it was last asked: in a simulation there is no reason for any. */
  takeErrors(): string[];
  setTime(nowMs: number): void;
  /** One tick of every controller, in order. */
  /** When a limiter next has a token for a waiting node; undefined: no node waits. Epoch milliseconds. */
  tick(parts: { readonly podGc: boolean }): Promise<number | undefined>;
  /** The evictor's turns between two ticks; answers as a tick does. */
  processQueuesBetweenTicks(): Promise<number | undefined>;
  /** Where the machines' instances are, in SIMULATED_REGION. */
  readonly cloud: MemoryCloud;
  /** Deletes recorded changes that every reader has processed. */
  forget(): void;
}

export interface WorldOptions {
  readonly store: RecordedStore;
  readonly policy: Policy;
  readonly seed: number;
  readonly startMs: number;
  readonly meter?: Meter;
}

const nobody = (): void => {};

export function createWorld({ store, policy, seed, startMs, meter }: WorldOptions): World {
  let nowMs = startMs;
  const clock: Clock = { nowMs: () => nowMs };
  const fraction = seededFraction(seed);
  const random: RandomSource = { fraction, uuid: () => seededUuid(fraction) };
  const errors: string[] = [];
  const log: Log = {
    debug: nobody,
    info: nobody,
    warn: nobody,
    error: (message, fields) => {
      const error = fields?.['error'];
      errors.push(error instanceof Error ? `${message}: ${error.message}` : message);
    },
  };
  // A wait uses no virtual time. It only yields to other tasks.
  const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const { items } = store;
  const cloud = memoryCloud({ clock, region: SIMULATED_REGION, accountId: ACCOUNT_ID });
  let isSchedulerWoken = false;
  const { api, heartbeat, controllers } = composeSystem({
    items,
    authenticator: simulationAuthenticator,
    clock,
    random,
    policy,
    log,
    meter: meter ?? { add: nobody },
    pause,
    cloud,
    probe: leaseProbe({
      url: PROBE_ORIGIN,
      credentials: probeCredentials,
      clock,
      fetch: (...request) => fetchFrom(endpoint)(...request),
    }),
    waker: {
      wake: async (names) => {
        if (names.includes('scheduler')) isSchedulerWoken = true;
        return [];
      },
    },
    heartbeat: { items: store.beats },
  });
  const endpoint = createEndpoint({ api, heartbeat, clock, seed });
  const view = clusterView(store.record);
  const delivered = createStreams(store.record, controllers);
  const slotNow = (): number => slotOf(nowMs, policy.nodeMonitorPeriodSeconds);
  // The passes of the scheduler that changes request, and the changes that follow from them.
  const streams: Streams = {
    delivered: delivered.delivered,
    async drain() {
      for (let passes = 0; passes < PASSES_MAX; passes += 1) {
        await delivered.drain();
        if (!isSchedulerWoken) return;
        isSchedulerWoken = false;
        await controllers.tickScheduler(slotNow());
      }
      throw new RangeError('the scheduler does not come to rest');
    },
  };

  return {
    store,
    policy,
    endpoint,
    view,
    streams,
    clock,
    cloud,
    takeErrors: () => errors.splice(0),
    setTime: (atMs) => {
      nowMs = atMs;
    },
    async tick({ podGc }) {
      const slot = slotNow();
      await controllers.tickCloudNode(slot);
      await controllers.tickNodeMonitor(slot);
      const evictor = await controllers.tickEvictor(slot);
      await controllers.tickWorkloads(slot);
      await controllers.tickScheduler(slot);
      if (podGc) await controllers.tickPodGc(slotOf(nowMs, policy.podGcPeriodSeconds));
      return evictor.kind === 'ran' ? evictor.nextTokenAtMs : undefined;
    },
    processQueuesBetweenTicks: async () => (await controllers.processQueuesBetweenTicks()).nextTokenAtMs,
    forget() {
      const { record } = store;
      record.forgetChanges('objects', Math.min(view.seen, streams.delivered.objects, streams.delivered.workloads));
      record.forgetChanges('health', streams.delivered.health);
      record.forgetChanges('control', Number.MAX_SAFE_INTEGER);
    },
  };
}

/** It stands for the probe's HTTP client; its requests go the way of all others. */
const fetchFrom =
  (endpoint: Endpoint): typeof globalThis.fetch =>
  async (input, init) => {
    const headers = new Headers(init?.headers);
    const answer = await endpoint.send({
      who: PROBE,
      method: init?.method ?? 'GET',
      path: new URL(String(input)).pathname,
      body: JSON.parse(String(init?.body)),
      contentType: headers.get('content-type') ?? '',
    });
    return new Response(JSON.stringify(answer.body), { status: answer.status });
  };
