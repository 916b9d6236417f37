/** The API over any item store: the same in the function, in tests and in simulations. */

import { decisionStore } from '../controllers/decisions/decision-store.ts';
import type { CidrSet } from '../domain/cidrs/cidr-set.ts';
import { createCidrSets } from '../domain/cidrs/cluster-cidrs.ts';
import type { Policy } from '../domain/policy.ts';
import type { ResourceDescriptor } from '../kube/descriptor.ts';
import { createOpenApi } from '../kube/openapi/openapi.ts';
import { failedRequests, type NoteFault, REQUEST_FAILED } from '../kube/request/log-throttle.ts';
import { type NoteRefusal, refusedSignIns } from '../kube/request/refused-sign-ins.ts';
import { type RequestLimits, requestThrottle } from '../kube/request/request-throttle.ts';
import { formatTime } from '../kube/time.ts';
import type { KubeObject } from '../kube/types.ts';
import type { AuditTrail } from '../ports/audit-trail.ts';
import type { Authenticator } from '../ports/authenticator.ts';
import type { Clock, RandomSource } from '../ports/clock.ts';
import type { Cloud } from '../ports/cloud.ts';
import type { HttpRequest, HttpResponse } from '../ports/http.ts';
import type { ItemStore, TransactWrite } from '../ports/item-store.ts';
import type { Log } from '../ports/log.ts';
import type { ReadPublicKey } from '../ports/node-keys.ts';
import { bootstrapTokenStore } from '../store/bootstrap-token-store.ts';
import { type ChangeLog, changeLog } from '../store/change-log.ts';
import { LEASE_NAMESPACE } from '../store/lease-record.ts';
import { leaseStore } from '../store/lease-store.ts';
import { nodeKeyStore } from '../store/node-key-store.ts';
import { nodeHealthWrites } from '../store/node-writes.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import { answerEnrolment } from './access/enrolment.ts';
import { answerSelfReview } from './access/self-review.ts';
import { withTermination } from './admission/namespace-lifecycle.ts';
import { fixedAnswers } from './discovery/fixed.ts';
import { openApiAnswers } from './discovery/openapi.ts';
import { SYSTEM_NAMESPACES } from './kinds/namespaces.ts';
import { systemPriorityClasses } from './kinds/priorityclasses.ts';
import { findResource, leases, namespaces, poddisruptionbudgets, pods, resources, storedAs } from './kinds/registry.ts';
import { findUnkept } from './kinds/unkept.ts';
import { virtualResources } from './kinds/virtual.ts';
import type { AnswerWatch, ServeDependencies } from './request/call.ts';
import type { Gzip } from './request/pack.ts';
import { serveApi } from './serve.ts';
import { type Budgets, budgetsOver } from './storage/budget-storage.ts';
import { clusterObjects, shardsOf } from './storage/cluster-objects.ts';
import { decisionStorage } from './storage/decision-storage.ts';
import { bootstrapTokenStorage, identityStorage } from './storage/identity-storage.ts';
import { nodeLeaseStorage } from './storage/lease-storage.ts';
import { nodeStorage } from './storage/node-storage.ts';
import {
  emptyStorage,
  type ObjectStorageOptions,
  objectStorage,
  splitStorage,
  withInitialObjects,
} from './storage/object-storage.ts';
import type { ResourceStorage } from './storage/storage.ts';
import type { ReadYaml } from './verbs/apply.ts';
import { answerLongPoll } from './watch/long-poll.ts';

/** Shown by `kubectl version`; the release of this project. */
export const NODEKEEPER_VERSION = '0.1.0';

/** Events are kept one hour from when they were last told, as upstream's --event-ttl. */
const EVENT_TTL_SECONDS = 3_600;

export interface ApiOptions {
  readonly items: ItemStore;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Waits: between tries at a contended write, and between looks of a watch. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly log: Log;
  /** Absent: told to `log`, remembered for as long as what is composed here. */
  readonly noteRefusal?: NoteRefusal;
  /** Likewise. */
  readonly noteFault?: NoteFault;
  readonly policy: Policy;
  /** Digest of a text, safe in a URL. */
  readonly hash: (text: string) => string;
  /** False where nothing may be written: what every cluster has from the start is then shown once the API has made it. */
  readonly makesInitialObjects?: boolean;
  /** Absent: long polls. */
  readonly answerWatch?: AnswerWatch;
  readonly readYaml: ReadYaml;
  readonly gzip: Gzip;
  /** Absent: nobody is enrolled here. */
  readonly readPublicKey?: ReadPublicKey;
  /** Asked about instances that enrol by their identity documents. Absent: none do. */
  readonly cloud?: Pick<Cloud, 'describeInstances'>;
  /** Where acts of people are kept; absent: nowhere. */
  readonly auditTrail?: AuditTrail;
  /** Absent: nobody is slowed down. */
  readonly limits?: RequestLimits;
}

export function composeApi(options: ApiOptions): (request: HttpRequest) => Promise<HttpResponse> {
  const { clock, random, policy } = options;
  const changes = changeLog({ items: options.items, clock, shardsOf });
  const { storageOf, budgets } = storagesOf(options, changes);
  return serveApi({
    storageOf,
    budgetsCovering: budgets.covering,
    descriptorOf: (group, version, resource) =>
      findResource(group, version, resource) ?? findUnkept(group, version, resource),
    random,
    podEvictionTimeoutSeconds: policy.podEvictionTimeoutSeconds,
    cidrSets: cidrSetsOf(policy),
    authenticator: options.authenticator,
    clock,
    log: options.log,
    noteRefusal: options.noteRefusal ?? refusedSignIns(options.log),
    noteFault: options.noteFault ?? failedRequests(options.log, REQUEST_FAILED),
    changes,
    pause: options.pause,
    answerWatch: options.answerWatch ?? answerLongPoll,
    readYaml: options.readYaml,
    gzip: options.gzip,
    ...(options.auditTrail === undefined ? {} : { auditTrail: options.auditTrail }),
    ...(options.limits === undefined ? {} : { throttle: requestThrottle(options.limits) }),
    fixed: fixedAnswers(
      { version: NODEKEEPER_VERSION },
      openApiAnswers(
        createOpenApi({
          resources: [...resources, ...virtualResources.map((each) => ({ ...each, subresources: [] }))],
          serverVersion: NODEKEEPER_VERSION,
          hash: options.hash,
        }),
      ),
    ),
    ...enrolmentOf(options),
    virtual: answerSelfReview,
  });
}

function enrolmentOf({ items, random, pause, readPublicKey, cloud }: ApiOptions): Pick<ServeDependencies, 'enrol'> {
  if (readPublicKey === undefined) return {};
  const identities = nodeKeyStore(items);
  const tokens = bootstrapTokenStore(items);
  return {
    enrol: answerEnrolment({
      identities,
      tokens,
      random,
      pause,
      readPublicKey,
      ...(cloud === undefined ? {} : { cloud }),
    }),
  };
}

interface Storages {
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  readonly budgets: Budgets;
}

/** Empty also for CIDRs that cannot work: parsePolicy has refused those. */
function cidrSetsOf(policy: Policy): readonly CidrSet[] {
  const creation = createCidrSets(policy);
  return creation.kind === 'created' ? creation.sets : [];
}

function storagesOf(
  { items, clock, random, pause, policy, makesInitialObjects = true }: ApiOptions,
  changes: ChangeLog,
): Storages {
  const objects = clusterObjects({ items, clock, random, pause });
  const plain = (descriptor: ResourceDescriptor, more: Partial<ObjectStorageOptions> = {}) =>
    objectStorage(descriptor, { objects, changes, ...more });
  const withInitial: typeof withInitialObjects = makesInitialObjects ? withInitialObjects : (storage) => storage;
  const budgets = budgetsOver(plain(poddisruptionbudgets), plain(pods));
  const make = (descriptor: ResourceDescriptor): ResourceStorage => {
    const { group, version, resource } = descriptor;
    if (findUnkept(group, version, resource) !== undefined) {
      return emptyStorage(async () => String(await changes.currentVersion(resource)));
    }
    switch (resource) {
      case 'nodes':
        return nodeStorage(plain(descriptor, { together: (write) => nodeTogether(write, clock.nowMs()) }), {
          items,
          clock,
          allocatesPodCidrs: policy.clusterCIDRs.length > 0,
        });
      case 'events':
        return plain(descriptor, { expiresAtSeconds: () => eventExpiry(clock.nowMs()) });
      case 'leases':
        return splitStorage(
          LEASE_NAMESPACE,
          nodeLeaseStorage({
            health: leaseStore(items),
            clock,
            random,
            currentVersion: async () => String(await changes.currentVersion(leases.resource)),
          }),
          plain(descriptor),
        );
      case 'namespaces':
        return withTermination(
          withInitial(plain(descriptor), SYSTEM_NAMESPACES, (name) => initial(namespaces.prepareForCreate, name)),
          storageOf,
        );
      case 'priorityclasses':
        return withInitial(
          plain(descriptor),
          systemPriorityClasses().map(({ metadata }) => metadata.name ?? ''),
          (name) => systemPriorityClass(name),
        );
      case 'nodeidentities':
        return identityStorage(nodeKeyStore(items), clock);
      case 'bootstraptokens':
        return bootstrapTokenStorage(bootstrapTokenStore(items), clock);
      case 'decisions':
        return decisionStorage(decisionStore(items), clock);
      case 'poddisruptionbudgets':
        return budgets.storage;
      default:
        return plain(descriptor);
    }
  };
  const made = new Map<string, ResourceStorage>();
  function storageOf(served: ResourceDescriptor): ResourceStorage {
    const descriptor = findUnkept(served.group, served.version, served.resource) ?? storedAs(served);
    const kept = made.get(descriptor.resource) ?? make(descriptor);
    made.set(descriptor.resource, kept);
    return kept;
  }
  const initial = (prepare: ResourceDescriptor['prepareForCreate'], name: string): KubeObject => {
    const nowMs = clock.nowMs();
    return prepare({ metadata: { name, uid: random.uuid(), creationTimestamp: formatTime(nowMs) } }, { nowMs });
  };
  const systemPriorityClass = (name: string): KubeObject => {
    const object = systemPriorityClasses().find(({ metadata }) => metadata.name === name);
    if (object === undefined) throw new Error(`${name} is no system priority class`);
    const { metadata } = initial((fresh) => fresh, name);
    return { ...object, metadata: { ...object.metadata, ...metadata } };
  };
  return { storageOf, budgets };
}

/** The digest in the `health` table moves with its Node, in one transaction. */
const nodeTogether = (write: ObjectWrite, nowMs: number): readonly TransactWrite[] => nodeHealthWrites(write, nowMs);

/**
 * When an event may be cleaned up. It counts from the write, as upstream: what stands in the event is the time of a
 * machine, which may be wrong by years.
 */
const eventExpiry = (nowMs: number): number => Math.ceil(nowMs / 1_000) + EVENT_TTL_SECONDS;
