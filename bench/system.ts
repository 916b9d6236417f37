/**
 * The whole system in one process, over a store and a clock that the bench passes: the one place where benches compose
 * it. Each call of a function here is a process of its own: it has caches and limits of its own.
 */
import { createHash } from 'node:crypto';
import { readYaml } from '../functions/api/read-yaml.ts';
import { composeApi } from '../functions/api/work.ts';
import { serveHeartbeat } from '../functions/heartbeat/work.ts';
import { type ControllerOptions, type FleetControllers, fleetControllers } from '../server/fleet-controllers.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { gzip } from '../shared/gzip.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/request/http.ts';
import { API_LIMITS, HEARTBEAT_LIMITS, requestThrottle } from '../shared/kubernetes/request/request-throttle.ts';
import type { Log } from '../shared/observability/log.ts';
import { simulationAuthenticator } from '../simulation/access.ts';
import { seededUuid } from '../simulation/seeded-random.ts';

export interface SystemOptions
  extends Pick<ControllerOptions, 'items' | 'clock' | 'partQueue' | 'probe'>,
    Partial<Pick<ControllerOptions, 'meter' | 'policy'>> {
  readonly fraction: () => number;
  /** Waits between attempts at a contended commit. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Faults of ours that are logged. */
  readonly onError: (message: string, fields?: Record<string, unknown>) => void;
}

type Serve = (request: HttpRequest) => Promise<HttpResponse>;

const nothing = (): void => {};

export const faultLog = (onError: SystemOptions['onError']): Log => ({
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: onError,
});

function processOf({ fraction, onError, ...rest }: SystemOptions) {
  return {
    policy: defaultPolicy,
    meter: { add: nothing },
    ...rest,
    random: { fraction, uuid: () => seededUuid(fraction) },
    log: faultLog(onError),
  };
}

export const controllersOf = (options: SystemOptions): FleetControllers => fleetControllers(processOf(options));

/** Callers are those of simulation/access.ts. */
export const apiOf = (options: SystemOptions): Serve =>
  composeApi({
    ...processOf(options),
    authenticator: simulationAuthenticator,
    readYaml,
    gzip,
    hash: (value) => createHash('sha256').update(value).digest('hex'),
    limits: API_LIMITS,
  });

export const heartbeatOf = (options: SystemOptions): Serve =>
  serveHeartbeat({
    ...processOf(options),
    authenticator: simulationAuthenticator,
    throttle: requestThrottle(HEARTBEAT_LIMITS),
  });
