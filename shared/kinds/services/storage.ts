/**
 * Services with their addresses. A Service that needs an address is assigned a free one of the range at its creation.
 *
 * An address is held by an IPAddress object with its text as name, as upstream stores it (MultiCIDRServiceAllocator).
 * It is written before the Service. A process that is killed between the two leaves an address without a Service.
 * Another Service may use that address after ABANDONED_MS.
 *
 * Cost of a creation: the write of the IPAddress and a read, besides the write of the Service.
 */

import type { KindStorage, StorageContext } from '../../api/kind-storage.ts';
import type { ResourceStorage, WriteResult } from '../../api/resource-storage.ts';
import type { Clock, RandomSource } from '../../clock.ts';
import { typed } from '../../kubernetes/normal-form.ts';
import * as status from '../../kubernetes/status.ts';
import { formatTime, parseTimeMs } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole } from '../prepare.ts';
import { servedKind } from '../served-kind.ts';
import { storedResource } from '../stored-resource.ts';
import type { KubeObject, KubeService } from '../types.ts';
import { withApiObject } from './api-objects.ts';
import { addressFields, addressOf, needsAddress } from './defaults.ts';
import { endpoints, endpointslices, services } from './serve.ts';

/** Addresses of Services: 10.96.0.0/16, as kubeadm configures it. The first one belongs to the API. */
const RANGE_PREFIX = '10.96';
const RANGE_TEXT = `${RANGE_PREFIX}.0.0/16`;
const FIRST_OFFSET = 2;
const LAST_OFFSET = 65_534;
/** Random addresses that are tried. With a half of the range in use, all of them are in use once in 65,000 times. */
const ATTEMPTS_MAX = 16;

/** A creation that has not finished after this time was killed. The function has a time limit of 29 s. */
const ABANDONED_MS = 60_000;
const SERVICE_UID_ANNOTATION = 'nodekeeper.dev/service-uid';

/** Not served: they hold the addresses of services, which are read in the Service. */
const IP_ADDRESSES = storedResource({
  group: 'networking.k8s.io',
  resource: 'ipaddresses',
  kind: 'IPAddress',
  scope: 'cluster',
});
export const ipaddresses: ResourceDescriptor = servedKind(IP_ADDRESSES, {
  columns: [],
  row: () => [],
  prepare: preparesWhole(IP_ADDRESSES),
  validate: () => [],
});

const addressAt = (offset: number): string => `${RANGE_PREFIX}.${Math.floor(offset / 256)}.${offset % 256}`;

interface IpAddress extends KubeObject {
  spec?: { parentRef?: { resource?: string; namespace?: string; name?: string } };
}

const heldFor = (address: string, { metadata }: KubeObject, uid: string, nowMs: number): IpAddress =>
  typed('networking.k8s.io', 'v1', 'IPAddress', {
    metadata: {
      name: address,
      uid,
      creationTimestamp: formatTime(nowMs),
      annotations: { [SERVICE_UID_ANNOTATION]: metadata.uid ?? '' },
    },
    spec: { parentRef: { group: '', resource: services.resource, namespace: metadata.namespace, name: metadata.name } },
  });

interface ServiceStorageOptions {
  readonly services: ResourceStorage;
  readonly addresses: ResourceStorage;
  readonly random: RandomSource;
  readonly clock: Clock;
}

export function serviceStorage({ services: stored, addresses, random, clock }: ServiceStorageOptions): ResourceStorage {
  /** True if the address is now held for the Service. */
  async function hold(address: string, service: KubeObject): Promise<boolean> {
    const held = heldFor(address, service, random.uuid(), clock.nowMs());
    if ((await addresses.create(held)).kind === 'written') return true;
    const holder: IpAddress | undefined = await addresses.get('', address);
    if (holder === undefined) return false;
    const heldSinceMs = parseTimeMs(holder.metadata.creationTimestamp) ?? clock.nowMs();
    if (clock.nowMs() - heldSinceMs < ABANDONED_MS) return false;
    const { namespace = '', name = '' } = holder.spec?.parentRef ?? {};
    const owner = await stored.get(namespace, name);
    if (owner !== undefined && addressOf(owner) === address) return false;
    return (
      (await addresses.update({ ...held, metadata: { ...holder.metadata, ...held.metadata } }, holder)).kind ===
      'written'
    );
  }

  /** Another Service may hold the address meanwhile. */
  async function release(address: string | undefined, service: KubeObject): Promise<void> {
    const holder = address === undefined ? undefined : await addresses.get('', address);
    if (holder?.metadata.annotations?.[SERVICE_UID_ANNOTATION] !== service.metadata.uid) return;
    await addresses.remove(holder as KubeObject);
  }

  async function withAddress(service: KubeService): Promise<KubeService> {
    if (!needsAddress(service)) return service;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const offset = FIRST_OFFSET + Math.floor(random.fraction() * (LAST_OFFSET - FIRST_OFFSET + 1));
      const address = addressAt(offset);
      if (!(await hold(address, service))) continue;
      const spec = { ...service.spec, clusterIP: address };
      return { ...service, spec: { ...spec, ...addressFields(spec, spec.type) } };
    }
    throw status.internalError(`failed to allocate a serviceIP: range ${RANGE_TEXT} is full`);
  }

  async function holdRequested(service: KubeService, old: KubeService | undefined): Promise<void> {
    const address = addressOf(service);
    if (address === undefined || address === (old === undefined ? undefined : addressOf(old))) return;
    const [first, second] = address.split('.');
    const refused = (why: string) =>
      status.invalid({ group: '', kind: services.kind }, service.metadata.name ?? '', [
        {
          reason: 'FieldValueInvalid',
          field: 'spec.clusterIPs',
          message: `Invalid value: [${JSON.stringify(address)}]: failed to allocate IP ${address}: ${why}`,
        },
      ]);
    if (`${first}.${second}` !== RANGE_PREFIX) {
      throw refused(`the provided IP (${address}) is not in the valid range. The range of valid IPs is ${RANGE_TEXT}`);
    }
    if (!(await hold(address, service))) throw refused('provided IP is already allocated');
  }

  return {
    ...stored,
    async create(service, along) {
      const { namespace = '', name = '' } = service.metadata;
      if ((await stored.get(namespace, name)) !== undefined) return { kind: 'conflict' };
      await holdRequested(service, undefined);
      const addressed = await withAddress(service);
      const created = await stored.create(addressed, along);
      if (created.kind === 'conflict') await release(addressOf(addressed), service);
      return created;
    },
    async update(next, old, along): Promise<WriteResult> {
      await holdRequested(next, old);
      const addressed = await withAddress(next);
      const written = await stored.update(addressed, old, along);
      const unused = written.kind === 'written' ? addressOf(old) : addressOf(addressed);
      if (addressOf(addressed) !== addressOf(old)) await release(unused, old);
      return written;
    },
    async remove(old, along) {
      const removed = await stored.remove(old, along);
      if (removed.kind === 'written') await release(addressOf(old), old);
      return removed;
    },
  };
}

const withOfApi = (
  descriptor: ResourceDescriptor,
  storage: ResourceStorage,
  { makesInitialObjects, newObject }: StorageContext,
): ResourceStorage => (makesInitialObjects ? withApiObject(descriptor, storage, newObject) : storage);

const ofApi: KindStorage[1] = (descriptor, context) => withOfApi(descriptor, context.plain(descriptor), context);

export const serviceStorages: readonly KindStorage[] = [
  [
    services,
    (descriptor, context) => {
      const { plain, random, clock } = context;
      const stored = serviceStorage({ services: plain(descriptor), addresses: plain(ipaddresses), random, clock });
      return withOfApi(descriptor, stored, context);
    },
  ],
  [endpoints, ofApi],
  [endpointslices, ofApi],
];
