/** What both functions of the API need: who asks, whether they may, and the storage of each kind. */

import type { AuditTrail } from '../access/audit-trail.ts';
import type { Authenticator } from '../access/authenticator.ts';
import { authorizer } from '../access/authorizer.ts';
import { nodeGraph } from '../access/node-graph.ts';
import { refusalsAdded } from '../access/refusal-store.ts';
import { refusedRequests } from '../access/refused-requests.ts';
import { type RequestLimits, type RequestThrottle, requestThrottle } from '../access/request-throttle.ts';
import type { Clock, RandomSource } from '../clock.ts';
import { defined } from '../defined.ts';
import type { Policy } from '../fleet/policy.ts';
import { type CustomKinds, customKinds } from '../kinds/custom-resources/kinds.ts';
import type { ApiAddress } from '../kinds/namespaces/contents.ts';
import { findResource } from '../kinds/registry.ts';
import { shardsOf } from '../kinds/resources.ts';
import { viewerRules } from '../kinds/roles/default-policies.ts';
import { failedRequests, REQUEST_FAILED, refusedSignIns } from '../kubernetes/log-throttle.ts';
import type { ReadYaml } from '../kubernetes/request-body.ts';
import type { Log } from '../observability/log.ts';
import { changeLog } from '../store/change-log.ts';
import type { ItemStore } from '../store/item-store.ts';
import type { ReadDependencies } from './call.ts';
import { composeStorages, type Storages } from './compose-storages.ts';
import type { Gzip } from './response-body.ts';

export interface RequestOptions {
  readonly items: ItemStore;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  /** The time up to which the change log may be closed. Absent: `clock`. A copy of another store has another one. */
  readonly versionClock?: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended write, and between two reads of a watch. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly log: Log;
  readonly policy: Policy;
  /**
   * False in a process that may not write. Objects of every new cluster then appear after another process created them.
   */
  readonly makesInitialObjects?: boolean;
  /** Certificates in PEM that clients in pods trust. Absent: none are published. */
  readonly apiAuthorities?: () => string;
  /** Absent: the API has no fixed address. */
  readonly apiAddress?: ApiAddress;
  /** Absent in a process that serves no writes. */
  readonly readYaml?: ReadYaml;
  readonly gzip: Gzip;
  /** Receives a line for each write by a person. Absent: no audit log. */
  readonly auditTrail?: AuditTrail;
  /** Limits the requests of each user. Absent: no limit. */
  readonly limits?: RequestLimits;
  /** Time that this thread has computed, from any origin. Milliseconds. Absent: `limits` limits the rate only. */
  readonly busyMs?: () => number;
}

export interface RequestParts extends Omit<ReadDependencies, 'answerWatch' | 'answerPodLog'> {
  readonly storages: Storages;
  readonly customs: CustomKinds;
}

/** A definition has a group with a dot. A path of another group costs no read. */
const mayBeCustom = (group: string): boolean => group.includes('.');

/** With the caches of a process: create them once. */
export function requestDependencies(options: RequestOptions): RequestParts {
  const changes = changeLog({ items: options.items, clock: options.versionClock ?? options.clock, shardsOf });
  const storages = composeStorages({ ...options, changes });
  const { storageOf, policies, definitions, sections } = storages;
  const customs = customKinds({ definitions, sections, loadPatterns: () => import('../patterns.ts') });
  return {
    storages,
    storageOf,
    authorizer: authorizer({ policies, nodeGraph: nodeGraph({ storageOf }), viewerRules }),
    descriptorOf: (group, version, resource) =>
      findResource(group, version, resource) ??
      (mayBeCustom(group) ? customs.find(group, version, resource) : undefined),
    customs,
    random: options.random,
    authenticator: options.authenticator,
    clock: options.clock,
    log: options.log,
    noteRefusal: refusedSignIns(options.log),
    noteFault: failedRequests(options.log, REQUEST_FAILED),
    changes,
    pause: options.pause,
    gzip: options.gzip,
    ...defined({ readYaml: options.readYaml, auditTrail: options.auditTrail, throttle: throttleOf(options) }),
  };
}

function throttleOf({ limits, busyMs, items, log }: RequestOptions): RequestThrottle | undefined {
  if (limits === undefined) return undefined;
  const noteFault = failedRequests(log, 'refused requests could not be counted');
  return requestThrottle(limits, {
    busyMs,
    onRefused: refusedRequests({ log, store: refusalsAdded(items), noteFault }),
  });
}
