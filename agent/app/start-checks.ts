/** The checks before the agent sends its first request: swap, topology policy, node IPs, reservations. */
import type { Log } from '../../shared/observability/log.ts';
import type { AgentConfig } from '../config.ts';
import type { Machine } from '../ports/machine.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime } from '../ports/time.ts';
import { parseNodeIpArgument } from '../rules/node-ip.ts';
import { nodeResources, reservationFault } from '../rules/node-resources.ts';
import { swapStartFault } from '../rules/swap-detection.ts';
import type { NumaNode } from '../rules/topology/ledger.ts';
import type { Distances } from '../rules/topology/mask.ts';
import { startTopology } from '../rules/topology/options.ts';
import { topologyManager } from './topology-admission.ts';

/** The agent must not run with this configuration on this machine. */
export class AgentStartError extends Error {
  override readonly name = 'AgentStartError';
}

export interface StartParts {
  readonly config: AgentConfig;
  readonly machine: Machine;
  readonly numa: { readonly nodes: readonly NumaNode[]; readonly distances: Distances | undefined };
  /** Text of /proc/swaps; undefined when there is none. */
  readonly swaps: string | undefined;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: AgentMeter;
}

/** @throws AgentStartError when the agent must not run */
export async function checkStart(parts: StartParts) {
  const swapFault = swapStartFault(parts.config.failSwapOn, parts.swaps);
  if (swapFault !== undefined) throw new AgentStartError(swapFault);
  const topology = startedTopology(parts);
  const nodeIps = configuredNodeIps(parts);
  const facts = await parts.machine.facts();
  await checkReservations(parts, facts);
  const { operatingSystem, architecture, osLabels = {} } = facts;
  return { topology, nodeIps, operatingSystem, architecture, osLabels };
}

async function checkReservations(
  { config, machine, log }: StartParts,
  facts: Awaited<ReturnType<Machine['facts']>>,
): Promise<void> {
  const use = await machine.use().catch((error: unknown) => {
    log.error('the use of the machine could not be read', { error });
    return undefined;
  });
  const { capacity } = nodeResources(undefined, { ...config, machine: facts, rootFsBytes: use?.nodeFs.capacityBytes });
  const pid = use === undefined ? {} : { pid: String(use.pidsMax) };
  const fault = reservationFault({ ...capacity, ...pid }, config);
  if (fault !== undefined) throw new AgentStartError(fault);
}

function startedTopology({ config, numa, meter, time, log }: StartParts) {
  const started = startTopology({
    policy: config.topologyManagerPolicy,
    scope: config.topologyManagerScope,
    options: config.topologyManagerPolicyOptions,
    nodeIds: numa.nodes.map(({ id }) => id),
    distances: numa.distances,
  });
  if (started.kind === 'refused') throw new AgentStartError(started.message);
  for (const warning of started.kind === 'on' ? started.warnings : []) log.warn(warning);
  const settings = started.kind === 'on' ? started.settings : undefined;
  return topologyManager({ settings, nodes: numa.nodes, meter, time });
}

function configuredNodeIps({ config, log }: StartParts) {
  const parsed = parseNodeIpArgument(config.nodeIp, true);
  if (parsed.kind === 'refused') throw new AgentStartError(`nodeIp ${config.nodeIp}: ${parsed.message}`);
  if (parsed.ignored.length > 0) log.warn('parts of the node IP are not addresses', { ignored: parsed.ignored });
  return parsed.addresses;
}
