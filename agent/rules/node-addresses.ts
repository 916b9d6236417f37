/**
 * status.addresses, and the annotation that passes our node IP to an external cloud provider
 * (pkg/kubelet/nodestatus/setters.go, NodeAddress).
 *
 * DNS and the default route are read only when they are needed: the rule returns `lookup` or `defaultRoute`, and the
 * caller evaluates it again with these facts.
 */
import { type IpAddress, isUnspecified, parseIp } from './ip-address.ts';
import { hostAddressComplaint } from './node-ip.ts';

export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

export interface AddressFacts {
  readonly nodeName: string;
  readonly hostname: string;
  /** Addresses of the node IP argument, at most two. */
  readonly nodeIps: readonly IpAddress[];
  readonly externalCloudProvider: boolean;
  /** The current status.addresses. */
  readonly present: readonly NodeAddress[];
  /** Addresses of all interfaces. */
  readonly hostAddresses: readonly string[];
  /** DNS addresses of the node name, in the order of the answer; absent if not read yet. */
  readonly lookup?: readonly string[];
  /** Addresses of the interface with the default route, preferred family first; absent if not read yet. */
  readonly defaultRoute?: readonly string[];
}

export type AddressDecision =
  | {
      readonly kind: 'decided';
      /** Absent: they do not change. */
      readonly addresses?: readonly NodeAddress[];
      /** Value of the annotation; absent: it is removed. */
      readonly providedNodeIp?: string;
    }
  | { readonly kind: 'lookup' }
  | { readonly kind: 'defaultRoute'; readonly families: readonly (4 | 6)[] }
  /** Addresses and annotation do not change. */
  | { readonly kind: 'failed'; readonly message: string };

export function decideAddresses(facts: AddressFacts): AddressDecision {
  const { hostname, nodeIps, externalCloudProvider, present, hostAddresses } = facts;
  const primary = specified(nodeIps[0]);
  const secondary = specified(nodeIps[1]);
  for (const [address, field] of [[primary, 'nodeIP'] as const, [secondary, 'secondaryNodeIP'] as const]) {
    const complaint = address === undefined ? undefined : hostAddressComplaint(address, hostAddresses);
    if (complaint !== undefined) return { kind: 'failed', message: `failed to validate ${field}: ${complaint}` };
  }
  const annotation =
    externalCloudProvider && primary !== undefined
      ? { providedNodeIp: secondary === undefined ? primary.text : `${primary.text},${secondary.text}` }
      : {};
  const host: NodeAddress = { type: 'Hostname', address: hostname };
  if (externalCloudProvider) {
    if (present.length > 0) return { kind: 'decided', ...annotation };
    if (nodeIps.length === 0) return { kind: 'decided', addresses: [host], ...annotation };
  }
  const internal = (address: IpAddress): NodeAddress => ({ type: 'InternalIP', address: address.text });
  if (primary !== undefined && secondary !== undefined) {
    return { kind: 'decided', addresses: [internal(primary), internal(secondary), host], ...annotation };
  }
  const found = primary === undefined ? foundAddress(facts) : ({ kind: 'found', address: primary } as const);
  if (found.kind !== 'found') return found;
  return { kind: 'decided', addresses: [internal(found.address), host], ...annotation };
}

const specified = (address: IpAddress | undefined): IpAddress | undefined =>
  address === undefined || isUnspecified(address) ? undefined : address;

function foundAddress(
  facts: AddressFacts,
): { readonly kind: 'found'; readonly address: IpAddress } | Exclude<AddressDecision, { kind: 'decided' }> {
  const literal = parseIp(facts.hostname);
  if (literal !== undefined) return { kind: 'found', address: literal };
  if (facts.lookup === undefined) return { kind: 'lookup' };
  const preferred = facts.nodeIps[0]?.family ?? 4;
  const usable = facts.lookup
    .map(parseIp)
    .filter((address) => address !== undefined)
    .filter((address) => hostAddressComplaint(address, facts.hostAddresses) === undefined);
  const named = usable.find(({ family }) => family === preferred) ?? usable[0];
  if (named !== undefined) return { kind: 'found', address: named };
  if (facts.defaultRoute === undefined) {
    return { kind: 'defaultRoute', families: preferred === 4 ? [4, 6] : [6, 4] };
  }
  const routed = facts.defaultRoute.map(parseIp).find((address) => address !== undefined);
  if (routed !== undefined) return { kind: 'found', address: routed };
  return {
    kind: 'failed',
    message: `can't get ip address of node ${facts.nodeName}. error: no interface has a default route`,
  };
}
