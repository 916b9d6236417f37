/** Determines the addresses of this node. It reads from the machine only the facts that the rule asks for. */
import type { AgentConfig } from '../config.ts';
import type { Machine } from '../ports/machine.ts';
import type { IpAddress } from '../rules/ip-address.ts';
import { type AddressDecision, type AddressFacts, decideAddresses, type NodeAddress } from '../rules/node-addresses.ts';

export async function findAddresses(
  machine: Pick<Machine, 'hostname' | 'addresses' | 'defaultAddress' | 'lookup'>,
  config: Pick<AgentConfig, 'nodeName' | 'cloudProvider'>,
  known: {
    /** Addresses of the node IP argument. */
    readonly nodeIps: readonly IpAddress[];
    /** The current status.addresses. */
    readonly present: readonly NodeAddress[];
  },
): Promise<Extract<AddressDecision, { kind: 'decided' | 'failed' }>> {
  let facts: AddressFacts = {
    nodeName: config.nodeName,
    hostname: machine.hostname(),
    externalCloudProvider: config.cloudProvider === 'external',
    hostAddresses: machine.addresses().map(({ address }) => address),
    ...known,
  };
  let decision = decideAddresses(facts);
  if (decision.kind === 'lookup') {
    facts = { ...facts, lookup: (await machine.lookup(config.nodeName)).map(({ address }) => address) };
    decision = decideAddresses(facts);
  }
  if (decision.kind === 'defaultRoute') {
    const found = await Promise.all(decision.families.map((family) => machine.defaultAddress(family)));
    decision = decideAddresses({ ...facts, defaultRoute: found.filter((address) => address !== undefined) });
  }
  if (decision.kind === 'decided' || decision.kind === 'failed') return decision;
  throw new Error(`the addresses are undecided although all facts are known: ${decision.kind}`);
}
