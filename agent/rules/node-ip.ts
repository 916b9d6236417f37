/**
 * The node IP argument, and whether an address belongs to this host (component-helpers/node/util/ips.go,
 * pkg/kubelet/kubelet_node_status.go).
 */
import { type IpAddress, isLinkLocalUnicast, isLoopback, isMulticast, isUnspecified, parseIp } from './ip-address.ts';

export type NodeIps =
  | {
      readonly kind: 'parsed';
      readonly addresses: readonly IpAddress[];
      /** Items of the argument that are not addresses. They are logged, and do not prevent the start. */
      readonly ignored: readonly string[];
    }
  | { readonly kind: 'refused'; readonly message: string };

const refused = (message: string): NodeIps => ({ kind: 'refused', message });

function judged(addresses: readonly IpAddress[], ignored: readonly string[], dualStackAllowed: boolean): NodeIps {
  const [first, second] = addresses;
  if (addresses.length > 2 || (second !== undefined && first?.family === second.family)) {
    return refused('must contain either a single IP or a dual-stack pair of IPs');
  }
  if (second !== undefined && !dualStackAllowed) return refused('dual-stack not supported in this configuration');
  if (second !== undefined && addresses.some(isUnspecified)) {
    return refused("dual-stack node IP cannot include '0.0.0.0' or '::'");
  }
  return { kind: 'parsed', addresses, ignored };
}

/**
 * Parses the argument: one address, or an IPv4 and an IPv6 address, separated by a comma. Surrounding blanks are
 * ignored. `dualStackAllowed`: the cloud provider is unset or external.
 */
export function parseNodeIpArgument(argument: string, dualStackAllowed: boolean): NodeIps {
  const addresses: IpAddress[] = [];
  const ignored: string[] = [];
  for (const item of argument.split(',').map((part) => part.trim())) {
    const address = parseIp(item);
    if (address !== undefined) addresses.push(address);
    else if (item !== '') ignored.push(item);
  }
  return judged(addresses, ignored, dualStackAllowed);
}

/** Why this address cannot be a node IP; undefined if it can. `hostAddresses`: of all interfaces. */
export function hostAddressComplaint(
  address: IpAddress | undefined,
  hostAddresses: readonly string[],
): string | undefined {
  if (address === undefined) return 'nodeIP must be a valid IP address';
  if (isLoopback(address)) return "nodeIP can't be loopback address";
  if (isMulticast(address)) return "nodeIP can't be a multicast address";
  if (isLinkLocalUnicast(address)) return "nodeIP can't be a link-local unicast address";
  if (isUnspecified(address)) return "nodeIP can't be an all zeros address";
  if (hostAddresses.some((text) => parseIp(text)?.text === address.text)) return undefined;
  return `node IP: "${address.text}" not found in the host's network interfaces`;
}
