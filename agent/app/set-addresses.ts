/** status.addresses and the annotation for an external cloud provider, as a step of the node status. */
import { PROVIDED_NODE_IP_ANNOTATION } from '../../shared/fleet/instances/instance.ts';
import type { AgentConfig } from '../config.ts';
import type { Machine } from '../ports/machine.ts';
import type { IpAddress } from '../rules/ip-address.ts';
import type { NodeAddress } from '../rules/node-addresses.ts';
import { findAddresses } from './node-addresses.ts';
import type { NodeSetter } from './node-status.ts';

/**
 * The reported host name is the name of the node, which a configured override may have changed.
 *
 * @param nodeIps addresses of the node IP argument
 */
export function addressSetter(
  machine: Pick<Machine, 'addresses' | 'defaultAddress' | 'lookup'>,
  config: Pick<AgentConfig, 'nodeName' | 'cloudProvider'>,
  nodeIps: readonly IpAddress[],
): NodeSetter {
  const host = {
    hostname: () => config.nodeName,
    addresses: () => machine.addresses(),
    defaultAddress: (family: 4 | 6) => machine.defaultAddress(family),
    lookup: (name: string) => machine.lookup(name),
  };
  return async (node) => {
    const present: readonly NodeAddress[] = node.status?.addresses ?? [];
    const found = await findAddresses(host, config, { nodeIps, present });
    if (found.kind === 'failed') throw new Error(found.message);
    const { [PROVIDED_NODE_IP_ANNOTATION]: _before, ...others } = node.metadata.annotations ?? {};
    const annotations =
      found.providedNodeIp === undefined ? others : { ...others, [PROVIDED_NODE_IP_ANNOTATION]: found.providedNodeIp };
    const addresses = found.addresses?.map((address) => ({ ...address }));
    return {
      node: {
        ...node,
        metadata: {
          ...node.metadata,
          ...(node.metadata.annotations === undefined && found.providedNodeIp === undefined ? {} : { annotations }),
        },
        ...(addresses === undefined ? {} : { status: { ...node.status, addresses } }),
      },
      events: [],
    };
  };
}
