/** `nodekeeper-agent doctor` on a machine that routes Services (docs/services.md). */
import type { AgentConfig } from '../config.ts';
import { type Finding, failed, ok, warning } from './finding.ts';

export interface ServicesReading {
  /** Why the rules of nftables cannot be read; undefined: they can. */
  readonly filterFault: string | undefined;
  /** Whether the machine forwards packets of others; undefined: unknown. */
  readonly isForwarding: boolean | undefined;
  /** Whether it answers a name of the cluster. */
  readonly answersNames: boolean;
}

const CHECK = 'services';
const FORWARD = 'net.ipv4.ip_forward is 0: a node port of this machine leads to its own processes alone';

/** @param isRunning whether the agent runs; undefined: unknown */
export function servicesFindings(
  { services }: Pick<AgentConfig, 'services'>,
  read: ServicesReading | undefined,
  isRunning: boolean | undefined,
): readonly Finding[] {
  if (services === undefined || read === undefined) return [];
  const { filterFault, isForwarding, answersNames } = read;
  if (filterFault !== undefined) return [failed(CHECK, filterFault, 'Install nftables, and run the agent as root.')];
  const { dnsAddress } = services;
  if (isRunning === true && !answersNames) {
    const todo = `Install iproute2, stop what uses port 53 (ss -lnp 'sport = :53'), and read the log of the agent.`;
    return [failed(CHECK, `${dnsAddress} does not answer names of the cluster`, todo)];
  }
  if (isForwarding === false)
    return [warning(CHECK, FORWARD, 'Set it to 1 with sysctl, if machines outside of the cluster use node ports.')];
  return [ok(CHECK, answersNames ? `routed by nftables, names at ${dnsAddress}` : 'nftables can be written')];
}
