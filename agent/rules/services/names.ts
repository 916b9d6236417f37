/**
 * What the names of Services mean. Source: the specification in kubernetes/dns (DNS-Based Service Discovery, 1.1.0).
 *
 * A Service with a cluster address has that address, a headless one those of its ready endpoints, an ExternalName is
 * an alias. Ports with names have SRV records. A name below the domain of the cluster that does not exist is answered
 * here: resolvers elsewhere do not know names of the cluster, and need not learn them.
 */
import type { Endpoint, KubeEndpointSlice, KubeService } from '../../../shared/kinds/types.ts';
import { parseIp } from '../ip-address.ts';
import { clusterAddresses, SERVICE_NAME_LABEL } from './load-balancing.ts';

const SPECIFICATION_VERSION = '1.1.0';
/** As CoreDNS: endpoints change within seconds. */
export const TTL_SECONDS = 5;
/** Records of one answer. One over TCP holds no more. */
const RECORDS_MAX = 1_000;
const NUMBERS = /^(?:\d{1,3}\.){4}in-addr\.arpa$/;

export type NameRecord = { readonly name: string } & (
  | { readonly type: 'A' | 'AAAA' | 'PTR' | 'CNAME' | 'TXT'; readonly data: string }
  | {
      readonly type: 'SRV';
      readonly data: {
        readonly priority: number;
        readonly weight: number;
        readonly port: number;
        readonly target: string;
      };
    }
);

export type NameAnswer =
  /** No answers: the name exists, and has no record of this type. */
  | { readonly kind: 'records'; readonly answers: readonly NameRecord[]; readonly additionals: readonly NameRecord[] }
  | { readonly kind: 'unknown' }
  /** Another name has the records. */
  | { readonly kind: 'alias'; readonly record: NameRecord; readonly target: string }
  /** Not a name of this cluster. */
  | { readonly kind: 'elsewhere' };

interface Named {
  readonly service: KubeService;
  readonly slices: readonly KubeEndpointSlice[];
}

interface Host {
  readonly address: string;
  readonly family: 4 | 6;
  /** The first part of its own name. */
  readonly hostname: string;
  readonly hasOwnName: boolean;
  readonly ports: KubeEndpointSlice['ports'];
}

const NOTHING: NameAnswer = { kind: 'records', answers: [], additionals: [] };

export class ServiceNames {
  readonly #domain: string;
  readonly #services = new Map<string, Named>();
  readonly #namespaces = new Set<string>();
  /** By address, for questions about addresses. Made with the first one. */
  #addresses: ReadonlyMap<string, string> | undefined;

  /** @param domain of the cluster, such as cluster.local */
  constructor(domain: string, services: readonly KubeService[], slices: readonly KubeEndpointSlice[]) {
    this.#domain = domain;
    const keyOf = (name = '', namespace = ''): string => `${name}.${namespace}`;
    const slicesOf = Map.groupBy(slices, ({ metadata: { namespace, labels } }) =>
      keyOf(labels?.[SERVICE_NAME_LABEL], namespace),
    );
    for (const service of services) {
      const { name, namespace = '' } = service.metadata;
      const key = keyOf(name, namespace);
      this.#services.set(key, { service, slices: slicesOf.get(key) ?? [] });
      this.#namespaces.add(namespace);
    }
  }

  /** @param name without the dot at its end; capital letters mean the same */
  answer(name: string, type: string): NameAnswer {
    const asked = name.toLowerCase();
    if (NUMBERS.test(asked)) return this.#ofAddress(name, asked, type);
    if (asked === this.#domain) return NOTHING;
    if (!asked.endsWith(`.${this.#domain}`)) return { kind: 'elsewhere' };
    const labels = asked.slice(0, -this.#domain.length - 1).split('.');
    if (asked === `dns-version.${this.#domain}`) {
      return records(type === 'TXT' ? [{ name, type: 'TXT', data: SPECIFICATION_VERSION }] : []);
    }
    if (labels.pop() !== 'svc') return { kind: 'unknown' };
    const namespace = labels.pop();
    if (namespace === undefined) return NOTHING;
    const service = labels.pop();
    if (service === undefined) return this.#namespaces.has(namespace) ? NOTHING : { kind: 'unknown' };
    const named = this.#services.get(`${service}.${namespace}`);
    return named === undefined ? { kind: 'unknown' } : this.#ofService(name, named, labels, type);
  }

  #ofService(name: string, named: Named, labels: readonly string[], type: string): NameAnswer {
    const { spec } = named.service;
    if (spec?.type === 'ExternalName') {
      const target = spec.externalName ?? '';
      if (labels.length > 0) return { kind: 'unknown' };
      return { kind: 'alias', record: { name, type: 'CNAME', data: target }, target };
    }
    const isPort = labels[0]?.startsWith('_') === true;
    if (isPort) return this.#ofPort(name, named, labels, type);
    const hosts = this.#hostsOf(named);
    if (labels.length === 0) return records(addressRecords(name, type, hosts));
    const own = isHeadless(named) && labels.length === 1 ? hosts.filter(({ hostname }) => hostname === labels[0]) : [];
    return own.length === 0 ? { kind: 'unknown' } : records(addressRecords(name, type, own));
  }

  /** `_port._protocol` of a Service, or a part of that. */
  #ofPort(name: string, named: Named, labels: readonly string[], type: string): NameAnswer {
    const [first = '', second] = labels;
    const ports = (named.service.spec?.ports ?? []).filter((port) => {
      const protocol = `_${(port.protocol ?? 'TCP').toLowerCase()}`;
      if (labels.length === 1) return protocol === first;
      return labels.length === 2 && protocol === second && `_${port.name}` === first && (port.name ?? '') !== '';
    });
    if (ports.length === 0) return { kind: 'unknown' };
    if (labels.length === 1 || type !== 'SRV') return NOTHING;
    const full = this.#nameOf(named.service);
    const [port] = ports;
    if (!isHeadless(named))
      return withTargets(name, [{ target: full, port: port?.port ?? 0, hosts: this.#hostsOf(named) }]);
    return withTargets(
      name,
      this.#hostsOf(named).flatMap((host) => {
        const own = host.ports?.find((each) => each.name === port?.name)?.port;
        return own === undefined ? [] : [{ target: `${host.hostname}.${full}`, port: own, hosts: [host] }];
      }),
    );
  }

  #hostsOf(named: Named): readonly Host[] {
    if (!isHeadless(named)) {
      return clusterAddresses(named.service).map(({ family, address }) => ({
        address,
        family: family === 'ip' ? 4 : 6,
        hostname: '',
        hasOwnName: false,
        ports: undefined,
      }));
    }
    const hosts = new Map<string, Host>();
    for (const { endpoints = [], ports } of named.slices) {
      for (const endpoint of endpoints) {
        const host = endpoint.conditions?.ready === false ? undefined : hostOf(endpoint, ports);
        if (host !== undefined && hosts.size < RECORDS_MAX) hosts.set(host.address, hosts.get(host.address) ?? host);
      }
    }
    return [...hosts.values()];
  }

  #nameOf({ metadata: { name, namespace } }: KubeService): string {
    return `${name}.${namespace}.svc.${this.#domain}`;
  }

  #ofAddress(name: string, asked: string, type: string): NameAnswer {
    this.#addresses ??= this.#namesByAddress();
    const address = asked.split('.').slice(0, 4).toReversed().join('.');
    const data = this.#addresses.get(address);
    if (data === undefined) return { kind: 'elsewhere' };
    return records(type === 'PTR' ? [{ name, type: 'PTR', data }] : []);
  }

  #namesByAddress(): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    for (const named of this.#services.values()) {
      const full = this.#nameOf(named.service);
      if (named.service.spec?.type === 'ExternalName') continue;
      for (const { address, family, hostname, hasOwnName } of this.#hostsOf(named)) {
        if (family === 4 && (!isHeadless(named) || hasOwnName))
          names.set(address, hasOwnName ? `${hostname}.${full}` : full);
      }
    }
    return names;
  }
}

const isHeadless = ({ service }: Named): boolean => clusterAddresses(service).length === 0;

function hostOf({ addresses, hostname = '' }: Endpoint, ports: Host['ports']): Host | undefined {
  const parsed = parseIp(addresses[0] ?? '');
  if (parsed === undefined) return undefined;
  const { text: address, family } = parsed;
  return {
    address,
    family,
    hostname: hostname === '' ? address.replaceAll(/[.:]/g, '-') : hostname.toLowerCase(),
    hasOwnName: hostname !== '',
    ports,
  };
}

const records = (answers: readonly NameRecord[], additionals: readonly NameRecord[] = []): NameAnswer => ({
  kind: 'records',
  answers,
  additionals,
});

const typeOf = ({ family }: Host): 'A' | 'AAAA' => (family === 4 ? 'A' : 'AAAA');

const addressRecords = (name: string, type: string, hosts: readonly Host[]): readonly NameRecord[] =>
  hosts.filter((host) => typeOf(host) === type).map((host) => ({ name, type: typeOf(host), data: host.address }));

interface PortTarget {
  readonly target: string;
  readonly port: number;
  readonly hosts: readonly Host[];
}

const withTargets = (name: string, targets: readonly PortTarget[]): NameAnswer =>
  records(
    targets.map(({ target, port }) => ({ name, type: 'SRV', data: { priority: 0, weight: 100, port, target } })),
    targets.flatMap(({ target, hosts }) =>
      hosts.map((host) => ({ name: target, type: typeOf(host), data: host.address })),
    ),
  );
