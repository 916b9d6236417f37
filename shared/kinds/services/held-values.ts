/**
 * Values that one Service at a time may have: an address, a node port. Each is held by an object with its text as name,
 * as upstream stores addresses (MultiCIDRServiceAllocator). It is written before the Service. A process that is killed
 * between the two leaves a value without a Service. Another Service may use that value after ABANDONED_MS.
 */
import type { ResourceStorage } from '../../api/resource-storage.ts';
import type { Clock, RandomSource } from '../../clock.ts';
import { typed } from '../../kubernetes/normal-form.ts';
import { formatTime, parseTimeMs } from '../../kubernetes/time.ts';
import type { StoredResource } from '../stored-resource.ts';
import type { KubeObject, KubeService } from '../types.ts';

/** A creation that has not finished after this time was killed. The function has a time limit of 29 s. */
const ABANDONED_MS = 60_000;
const SERVICE_UID_ANNOTATION = 'nodekeeper.dev/service-uid';

interface Holder extends KubeObject {
  spec?: { parentRef?: { resource?: string; namespace?: string; name?: string } };
}

export interface HeldValues {
  /** True if the value is now held for the Service. */
  hold(value: string, service: KubeObject): Promise<boolean>;
  /** Another Service may hold the value meanwhile. */
  release(value: string, service: KubeObject): Promise<void>;
}

export interface HeldValuesOptions {
  readonly kind: Pick<StoredResource, 'group' | 'version' | 'kind'>;
  readonly services: ResourceStorage;
  readonly holders: ResourceStorage;
  readonly random: RandomSource;
  readonly clock: Clock;
  /** The values that a Service has. */
  readonly valuesOf: (service: KubeService) => readonly string[];
}

export function heldValues({ kind, services, holders, random, clock, valuesOf }: HeldValuesOptions): HeldValues {
  const holderFor = (value: string, { metadata }: KubeObject): Holder =>
    typed(kind.group, kind.version, kind.kind, {
      metadata: {
        name: value,
        uid: random.uuid(),
        creationTimestamp: formatTime(clock.nowMs()),
        annotations: { [SERVICE_UID_ANNOTATION]: metadata.uid ?? '' },
      },
      spec: { parentRef: { group: '', resource: 'services', namespace: metadata.namespace, name: metadata.name } },
    });
  return {
    async hold(value, service) {
      const held = holderFor(value, service);
      if ((await holders.create(held)).kind === 'written') return true;
      const holder: Holder | undefined = await holders.get('', value);
      if (holder === undefined) return false;
      const heldSinceMs = parseTimeMs(holder.metadata.creationTimestamp) ?? clock.nowMs();
      if (clock.nowMs() - heldSinceMs < ABANDONED_MS) return false;
      const { namespace = '', name = '' } = holder.spec?.parentRef ?? {};
      const owner = await services.get(namespace, name);
      if (owner !== undefined && valuesOf(owner).includes(value)) return false;
      const taken = { ...held, metadata: { ...holder.metadata, ...held.metadata } };
      return (await holders.update(taken, holder)).kind === 'written';
    },
    async release(value, service) {
      const holder = await holders.get('', value);
      if (holder?.metadata.annotations?.[SERVICE_UID_ANNOTATION] !== service.metadata.uid) return;
      await holders.remove(holder as KubeObject);
    },
  };
}
