/**
 * Services with their addresses and node ports. A Service that needs one is assigned a free one at its creation, or at
 * the update that makes it need one. What it had and no longer has is released (held-values.ts).
 *
 * Two Services never have one value: a value is held by a conditional write before the Service is written, and released
 * after. A process that is killed in between leaves a value without a Service.
 *
 * Cost of a creation: a write per address and node port, and a read, besides the write of the Service.
 */

import type { KindStorage, StorageContext } from '../../api/kind-storage.ts';
import type { ResourceStorage, WriteResult } from '../../api/resource-storage.ts';
import type { Clock, RandomSource } from '../../clock.ts';
import { invalidValue } from '../../kubernetes/causes.ts';
import * as status from '../../kubernetes/status.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import { storedResource } from '../stored-resource.ts';
import type { KubeService } from '../types.ts';
import { withApiObject } from './api-objects.ts';
import { addressFields, addressOf, needsAddress } from './defaults.ts';
import { heldValues } from './held-values.ts';
import {
  FIRST_NODE_PORT,
  LAST_NODE_PORT,
  needsNodePorts,
  nodePortsOf,
  portsToAssign,
  withSharedPorts,
} from './node-ports.rule.ts';
import { endpoints, endpointslices, services } from './serve.ts';

/** Addresses of Services: 10.96.0.0/16, as kubeadm configures it. The first one belongs to the API. */
const RANGE_PREFIX = '10.96';
const RANGE_TEXT = `${RANGE_PREFIX}.0.0/16`;
const FIRST_OFFSET = 2;
const LAST_OFFSET = 65_534;
/** Random addresses that are tried. With a half of the range in use, all of them are in use once in 65,000 times. */
const ATTEMPTS_MAX = 16;

/** Not served: they hold what is read in the Service. */
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

const NODE_PORTS = storedResource({
  group: 'nodekeeper.dev',
  resource: 'nodeports',
  kind: 'NodePort',
  scope: 'cluster',
});
export const nodeports: ResourceDescriptor = servedKind(NODE_PORTS, {
  columns: [],
  row: () => [],
  prepare: preparesWhole(NODE_PORTS),
  validate: () => [],
});

const addressAt = (offset: number): string => `${RANGE_PREFIX}.${Math.floor(offset / 256)}.${offset % 256}`;
const addressesOf: ValuesOf = (service) => [addressOf(service)].filter((each) => each !== undefined);
const portTextsOf: ValuesOf = (service) => nodePortsOf(service).map(String);

type ValuesOf = (service: KubeService) => readonly string[];

function unused(valuesOf: ValuesOf, of: KubeService, kept: KubeService | undefined): readonly string[] {
  const used = kept === undefined ? [] : valuesOf(kept);
  return valuesOf(of).filter((value) => !used.includes(value));
}

interface ServiceStorageOptions {
  readonly services: ResourceStorage;
  readonly addresses: ResourceStorage;
  readonly nodePorts: ResourceStorage;
  readonly random: RandomSource;
  readonly clock: Clock;
}

export function serviceStorage(options: ServiceStorageOptions): ResourceStorage {
  const { services: stored, random } = options;
  const addresses = heldValues({ ...options, kind: IP_ADDRESSES, holders: options.addresses, valuesOf: addressesOf });
  const nodePorts = heldValues({ ...options, kind: NODE_PORTS, holders: options.nodePorts, valuesOf: portTextsOf });

  async function withAddress(service: KubeService): Promise<KubeService> {
    if (!needsAddress(service)) return service;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const offset = FIRST_OFFSET + Math.floor(random.fraction() * (LAST_OFFSET - FIRST_OFFSET + 1));
      const address = addressAt(offset);
      if (!(await addresses.hold(address, service))) continue;
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
    if (!(await addresses.hold(address, service))) throw refused('provided IP is already allocated');
  }

  /** With all node ports. Those that it did not have before are held. */
  async function withNodePorts(given: KubeService, old: KubeService | undefined): Promise<KubeService> {
    if (!needsNodePorts(given.spec)) return given;
    const has = new Set(old === undefined ? [] : nodePortsOf(old));
    const taken: number[] = [];
    const ports = [...(given.spec?.ports ?? [])];
    try {
      for (const nodePort of nodePortsOf(given)) {
        if (has.has(nodePort)) continue;
        const why = await refusalOf(nodePort, given);
        if (why !== undefined) throw invalidNodePort(given, nodePort, why);
        taken.push(nodePort);
      }
      for (const indexes of portsToAssign(given.spec ?? {})) {
        const nodePort = await freeNodePort(given);
        taken.push(nodePort);
        for (const index of indexes) ports[index] = { ...ports[index]!, nodePort };
      }
    } catch (fault) {
      for (const nodePort of taken) await nodePorts.release(String(nodePort), given);
      throw fault;
    }
    return { ...given, spec: { ...given.spec, ports: withSharedPorts(ports) } };
  }

  async function refusalOf(nodePort: number, service: KubeService): Promise<string | undefined> {
    if (nodePort < FIRST_NODE_PORT || nodePort > LAST_NODE_PORT) {
      const range = `${FIRST_NODE_PORT}-${LAST_NODE_PORT}`;
      return `provided port is not in the valid range. The range of valid ports is ${range}`;
    }
    return (await nodePorts.hold(String(nodePort), service)) ? undefined : 'provided port is already allocated';
  }

  async function freeNodePort(service: KubeService): Promise<number> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const nodePort = FIRST_NODE_PORT + Math.floor(random.fraction() * (LAST_NODE_PORT - FIRST_NODE_PORT + 1));
      if (await nodePorts.hold(String(nodePort), service)) return nodePort;
    }
    throw status.internalError('failed to allocate a nodePort: range is full');
  }

  /** Releases what one state of a Service has and the other has not. */
  async function releaseUnused(of: KubeService, kept: KubeService | undefined): Promise<void> {
    for (const address of unused(addressesOf, of, kept)) await addresses.release(address, of);
    for (const nodePort of unused(portTextsOf, of, kept)) await nodePorts.release(nodePort, of);
  }

  /** With all its values, which are held. */
  async function withValues(given: KubeService, old: KubeService | undefined): Promise<KubeService> {
    await holdRequested(given, old);
    const addressed = await withAddress(given);
    try {
      return await withNodePorts(addressed, old);
    } catch (fault) {
      // Its requested node ports may be held by another update of it.
      for (const address of unused(addressesOf, addressed, old)) await addresses.release(address, addressed);
      throw fault;
    }
  }

  return {
    ...stored,
    async create(service, along) {
      const { namespace = '', name = '' } = service.metadata;
      if ((await stored.get(namespace, name)) !== undefined) return { kind: 'conflict' };
      const complete = await withValues(service, undefined);
      const created = await stored.create(complete, along);
      if (created.kind === 'conflict') await releaseUnused(complete, undefined);
      return created;
    },
    async update(next, old, along): Promise<WriteResult> {
      const complete = await withValues(next, old);
      const written = await stored.update(complete, old, along);
      if (written.kind === 'written') await releaseUnused(old, complete);
      else await releaseUnused(complete, old);
      return written;
    },
    async remove(old, along) {
      const removed = await stored.remove(old, along);
      if (removed.kind === 'written') await releaseUnused(old, undefined);
      return removed;
    },
  };
}

function invalidNodePort({ metadata, spec }: KubeService, nodePort: number, why: string): status.StatusError {
  const index = (spec?.ports ?? []).findIndex((port) => port.nodePort === nodePort);
  return status.invalid({ group: '', kind: services.kind }, metadata.name ?? '', [
    invalidValue(`spec.ports[${index}].nodePort`, nodePort, why),
  ]);
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
      const stored = serviceStorage({
        services: plain(descriptor),
        addresses: plain(ipaddresses),
        nodePorts: plain(nodeports),
        random,
        clock,
      });
      return withOfApi(descriptor, stored, context);
    },
  ],
  [endpoints, ofApi],
  [endpointslices, ofApi],
];
