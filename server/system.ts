/**
 * The whole system over a store and a clock: the API, heartbeats and the work of every function, in one process. A home
 * adds what carries requests, changes and time. Nothing below asks where it runs.
 */
import { readYaml } from '../functions/api/read-yaml.ts';
import { type ApiOptions, composeApiAndAdmission } from '../functions/api/work.ts';
import { sha256Of } from '../functions/heartbeat/sha256.ts';
import { type RenewLeaseDependencies, serveHeartbeat } from '../functions/heartbeat/work.ts';
import type { Authenticator } from '../shared/access/authenticator.ts';
import { controllerObjects } from '../shared/admission/controller-objects.ts';
import { beatTimesOf } from '../shared/fleet/nodes/node-profile.ts';
import { gzipInThread } from '../shared/gzip.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';
import { type ControllerOptions, type FleetControllers, fleetControllers } from './fleet-controllers.ts';
import { listTurns } from './list-turns.ts';
import { sha256 } from './sha256.ts';

export interface SystemOptions extends ControllerOptions {
  readonly authenticator: Authenticator;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Options of one part, in place of or besides the common ones. */
  readonly api?: Partial<ApiOptions>;
  readonly heartbeat?: Partial<RenewLeaseDependencies>;
}

type Serve = (request: HttpRequest) => Promise<HttpResponse>;

export interface System {
  readonly api: Serve;
  readonly heartbeat: Serve;
  readonly controllers: FleetControllers;
}

/** What every API in one process has in common: nothing is loaded on demand. */
export const inProcess = { hash: sha256, readYaml, gzip: gzipInThread } as const;

/** Once per process: the parts have caches and shares of their users. */
export function composeSystem(options: SystemOptions): System {
  const { serve: api, admission } = composeApiAndAdmission({
    ...inProcess,
    inTurn: listTurns(),
    ...options,
    ...options.api,
  });
  const admitObjects = controllerObjects({ ...options, admission });
  return {
    api,
    heartbeat: serveHeartbeat({
      items: options.items,
      authenticator: options.authenticator,
      clock: options.clock,
      random: options.random,
      log: options.log,
      beatTimes: beatTimesOf(options.policy),
      sha256: sha256Of,
      ...options.heartbeat,
    }),
    controllers: fleetControllers({ sha256, ...options, admitObjects }),
  };
}
