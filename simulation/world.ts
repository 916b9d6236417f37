/** The whole system on virtual time: real API, heartbeat and controllers over a real store; machines and clock are simulated. */
import { createHash } from 'node:crypto';
import { composeApi } from '../shared/app/api/compose.ts';
import { type FleetControllers, fleetControllers } from '../shared/app/controllers/index.ts';
import { serveHeartbeat } from '../shared/app/renew-lease.ts';
import type { Policy } from '../shared/domain/policy.ts';
import { slotOf } from '../shared/domain/tick.ts';
import { formatMicroTime } from '../shared/kube/time.ts';
import type { Clock, RandomSource } from '../shared/ports/clock.ts';
import type { Log, Meter } from '../shared/ports/log.ts';
import type { Probe } from '../shared/ports/probe.ts';
import { PROBE, simulationAuthenticator } from './access.ts';
import { type ClusterView, clusterView } from './cluster-view.ts';
import { createEndpoint, type Endpoint, messageOf } from './endpoint.ts';
import type { RecordedStore } from './recorded-store.ts';
import { seededFraction, seededUuid } from './seeded-random.ts';
import { createStreams, type Streams } from './streams.ts';

const PROBE_LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PROBE_LEASE = 'nodekeeper-probe';
/** So that the choice of lost requests does not hang on how many names and uids were drawn. */
const INGEST_SEED_OFFSET = 0x5eed;

/** Controllers of later stages; absent while there are none. */
interface LaterControllers {
  tickCloudNode?(slot: number): Promise<unknown>;
  tickPodGc?(slot: number): Promise<unknown>;
}

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
  tick(parts: { readonly podGc: boolean }): Promise<void>;
  readonly hasCloudNode: boolean;
  /** What the probe beats need; call once before the first tick. */
  prepare(): Promise<void>;
  /** Lets go of recorded changes that everybody has seen. */
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
  // Waits take no virtual time, but others get their turn.
  const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const { items } = store;
  const endpoint = createEndpoint({
    api: composeApi({
      items,
      authenticator: simulationAuthenticator,
      clock,
      random,
      pause,
      log,
      policy,
      hash: (text) => createHash('sha256').update(text).digest('hex'),
    }),
    heartbeat: serveHeartbeat({ items: store.beats, authenticator: simulationAuthenticator, clock, random, log }),
    fraction: seededFraction(seed + INGEST_SEED_OFFSET),
  });
  const probe: Probe = {
    async beat() {
      const answer = await endpoint.send({
        who: PROBE,
        method: 'PATCH',
        path: `${PROBE_LEASES}/${PROBE_LEASE}`,
        body: { spec: { renewTime: formatMicroTime(nowMs) } },
        contentType: 'application/merge-patch+json',
      });
      return answer.status === 200 ? { kind: 'accepted' } : { kind: 'failed', reason: messageOf(answer) };
    },
  };
  const controllers: FleetControllers & LaterControllers = fleetControllers({
    items,
    clock,
    random,
    policy,
    log,
    meter: meter ?? { add: nobody },
    probe,
    pause,
  });
  const view = clusterView(store.record);
  const streams = createStreams(store.record, controllers);

  return {
    store,
    policy,
    endpoint,
    view,
    streams,
    clock,
    hasCloudNode: controllers.tickCloudNode !== undefined,
    takeErrors: () => errors.splice(0),
    setTime: (atMs) => {
      nowMs = atMs;
    },
    async tick({ podGc }) {
      const slot = slotOf(nowMs, policy.nodeMonitorPeriodSeconds);
      await controllers.tickCloudNode?.(slot);
      await controllers.tickNodeMonitor(slot);
      await controllers.tickEvictor(slot);
      if (podGc) await controllers.tickPodGc?.(slotOf(nowMs, policy.podGcPeriodSeconds));
    },
    async prepare() {
      const lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: PROBE_LEASE, namespace: 'kube-node-lease' },
        spec: { holderIdentity: PROBE_LEASE },
      };
      const answer = await endpoint.send({ who: PROBE, method: 'POST', path: PROBE_LEASES, body: lease });
      if (answer.status !== 201) throw new Error(`the probe's lease could not be made: ${messageOf(answer)}`);
    },
    forget() {
      const { record } = store;
      record.forgetChanges('objects', Math.min(view.seen, streams.delivered.objects));
      record.forgetChanges('health', streams.delivered.health);
      record.forgetChanges('control', Number.MAX_SAFE_INTEGER);
    },
  };
}
