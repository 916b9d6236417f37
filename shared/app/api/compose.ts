/** The API over any item store: the same in the function, in tests and in simulations. */
import type { Policy } from '../../domain/policy.ts';
import { createOpenApi } from '../../kube/openapi/openapi.ts';
import type { ResourceDescriptor } from '../../kube/resources/descriptor.ts';
import { findResource, findStored, leases, namespaces, resources, storedAs } from '../../kube/resources/registry.ts';
import { virtualResources } from '../../kube/resources/virtual.ts';
import { formatTime, parseTimeMs } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Authenticator } from '../../ports/authenticator.ts';
import type { Clock, RandomSource } from '../../ports/clock.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { ItemStore, TransactWrite } from '../../ports/item-store.ts';
import type { Log } from '../../ports/log.ts';
import { type ChangeLog, changeLog } from '../../store/change-log.ts';
import { healthStore } from '../../store/health-store.ts';
import { LEASE_NAMESPACE } from '../../store/lease-record.ts';
import { type ObjectWrite, objectStore } from '../../store/object-store.ts';
import { nodeHealthWrites } from '../node-writes.ts';
import { fixedAnswers } from './fixed.ts';
import { nodeLeaseStorage } from './lease-storage.ts';
import { type ObjectStorageOptions, objectStorage, splitStorage, withSystemNamespaces } from './object-storage.ts';
import { openApiAnswers } from './openapi.ts';
import { answerSelfReview } from './self-review.ts';
import { serveApi } from './serve.ts';
import type { ResourceStorage } from './storage.ts';

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
  readonly policy: Policy;
  /** Digest of a text, safe in a URL. */
  readonly hash: (text: string) => string;
}

export function composeApi(options: ApiOptions): (request: HttpRequest) => Promise<HttpResponse> {
  const { clock, random, policy } = options;
  const changes = changeLog({ items: options.items, clock, shardsOf });
  const storages = storagesOf(options, changes);
  return serveApi({
    storageOf: (descriptor) => storages(storedAs(descriptor)),
    descriptorOf: findResource,
    random,
    podEvictionTimeoutSeconds: policy.podEvictionTimeoutSeconds,
    authenticator: options.authenticator,
    clock,
    log: options.log,
    changes,
    pause: options.pause,
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
    virtual: answerSelfReview,
  });
}

const shardsOf = (resource: string): number => findStored(resource)?.shards ?? 1;

function storagesOf(options: ApiOptions, changes: ChangeLog): (descriptor: ResourceDescriptor) => ResourceStorage {
  const { items, clock, random, pause } = options;
  const objects = objectStore({
    items,
    clock,
    shardsOf,
    selectableFields: (resource, object) =>
      Object.fromEntries(
        Object.entries(findStored(resource)?.selectableFields ?? {}).map(([field, read]) => [field, read(object)]),
      ),
    random: random.fraction,
    pause,
  });
  const plain = (descriptor: ResourceDescriptor, more: Partial<ObjectStorageOptions> = {}) =>
    objectStorage(descriptor, { objects, changes, ...more });
  const made = new Map<string, ResourceStorage>();
  const make = (descriptor: ResourceDescriptor): ResourceStorage => {
    switch (descriptor.resource) {
      case 'nodes':
        return plain(descriptor, { together: (write) => nodeTogether(write, clock.nowMs()) });
      case 'events':
        return plain(descriptor, { expiresAtSeconds: eventExpiry });
      case 'leases':
        return splitStorage(
          LEASE_NAMESPACE,
          nodeLeaseStorage({
            health: healthStore(items),
            clock,
            random,
            currentVersion: async () => String(await changes.currentVersion(leases.resource)),
          }),
          plain(descriptor),
        );
      case 'namespaces':
        return withSystemNamespaces(plain(descriptor), (name) => systemNamespace(name, clock.nowMs(), random.uuid()));
      default:
        return plain(descriptor);
    }
  };
  return (descriptor) => {
    const kept = made.get(descriptor.resource) ?? make(descriptor);
    made.set(descriptor.resource, kept);
    return kept;
  };
}

/** The digest in the `health` table moves with its Node, in one transaction. */
const nodeTogether = (write: ObjectWrite, nowMs: number): readonly TransactWrite[] => nodeHealthWrites(write, nowMs);

function eventExpiry(event: KubeObject): number {
  const last = event['lastTimestamp'] ?? event['eventTime'] ?? event.metadata.creationTimestamp;
  const lastMs = parseTimeMs(typeof last === 'string' ? last : event.metadata.creationTimestamp) ?? 0;
  return Math.ceil(lastMs / 1_000) + EVENT_TTL_SECONDS;
}

function systemNamespace(name: string, nowMs: number, uid: string): KubeObject {
  const metadata = { name, uid, creationTimestamp: formatTime(nowMs) };
  return namespaces.prepareForCreate({ kind: 'Namespace', apiVersion: 'v1', metadata }, { nowMs });
}
