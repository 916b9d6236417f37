/**
 * The whole system in one process, over a store and a clock that the bench passes: the one place where benches compose
 * it. Each call of a function here is a process of its own: it has caches and limits of its own.
 */
import { type ControllerOptions, type FleetControllers, fleetControllers } from '../server/fleet-controllers.ts';
import { composeSystem, type System } from '../server/system.ts';
import { API_LIMITS, HEARTBEAT_LIMITS, requestThrottle } from '../shared/access/request-throttle.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import type { Log } from '../shared/observability/log.ts';
import { simulationAuthenticator } from '../simulation/access.ts';
import { seededUuid } from '../simulation/seeded-random.ts';

export interface SystemOptions
  extends Pick<ControllerOptions, 'items' | 'clock' | 'partQueue' | 'probe'>,
    Partial<Pick<ControllerOptions, 'meter' | 'policy' | 'tickQueue'>> {
  readonly fraction: () => number;
  /** Waits between attempts at a contended commit. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Faults of ours that are logged. */
  readonly onError: (message: string, fields?: Record<string, unknown>) => void;
}

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
const systemOf = (options: SystemOptions): System =>
  composeSystem({
    ...processOf(options),
    authenticator: simulationAuthenticator,
    api: { limits: API_LIMITS },
    heartbeat: { throttle: requestThrottle(HEARTBEAT_LIMITS) },
  });

export const apiOf = (options: SystemOptions): System['api'] => systemOf(options).api;
export const heartbeatOf = (options: SystemOptions): System['heartbeat'] => systemOf(options).heartbeat;
