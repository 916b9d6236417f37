/**
 * The resolver of a pod that uses names of the cluster, as a resolv.conf(5).
 * Source: upstream pkg/kubelet/network/dns/dns.go.
 */

import { defined } from '../../../shared/defined.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';

/** Limits of the C library. Upstream leaves out what is over them, too. */
const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_LENGTH_MAX = 2_048;

export interface ClusterDns {
  /** Where this machine answers names of the cluster. */
  readonly address: string;
  /** Such as cluster.local. */
  readonly domain: string;
}

/** A resolv.conf. */
export interface ResolverConfig {
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/**
 * Undefined: the pod has the resolver of the machine.
 *
 * @param machine its searches follow those of the cluster
 */
export function podResolver(
  pod: KubePod,
  { address, domain }: ClusterDns,
  machine: Pick<ResolverConfig, 'searches'>,
): ResolverConfig | undefined {
  const { dnsPolicy = 'ClusterFirst', dnsConfig, hostNetwork } = pod.spec ?? {};
  const isOfCluster = dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && hostNetwork !== true);
  if (!isOfCluster && dnsPolicy !== 'None') return undefined;
  const { namespace = '' } = pod.metadata;
  const own = [`${namespace}.svc.${domain}`, `svc.${domain}`, domain];
  const nameservers = [...(isOfCluster ? [address] : []), ...(dnsConfig?.nameservers ?? [])];
  const searches = [...(isOfCluster ? [...own, ...machine.searches] : []), ...(dnsConfig?.searches ?? [])];
  const options = new Map(isOfCluster ? [['ndots', 'ndots:5']] : []);
  for (const { name = '', value } of dnsConfig?.options ?? []) {
    options.set(name, [name, ...Object.values(defined({ value }))].join(':'));
  }
  return {
    nameservers: unique(nameservers).slice(0, NAMESERVERS_MAX),
    searches: withinLength(unique(searches).slice(0, SEARCHES_MAX)),
    options: [...options.values()],
  };
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

function withinLength(searches: readonly string[]): readonly string[] {
  let length = 0;
  return searches.filter((each) => {
    length += each.length + 1;
    return length <= SEARCH_LENGTH_MAX;
  });
}

export const resolverText = ({ nameservers, searches, options }: ResolverConfig): string =>
  [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...nameservers.map((each) => `nameserver ${each}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
    '',
  ].join('\n');

/** The last search line counts, as in the C library. */
export function parseResolver(text: string): ResolverConfig {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  const ofKind = (...kinds: readonly string[]): string[][] =>
    lines.flatMap(([kind = '', ...rest]) => (kinds.includes(kind) ? [rest] : []));
  return {
    nameservers: ofKind('nameserver').flatMap(([address]) => address ?? []),
    searches: ofKind('search', 'domain').at(-1) ?? [],
    options: ofKind('options').flat(),
  };
}
