/**
 * Whether the topology manager can start with its configuration on this machine.
 * Source: topology_manager.go, policy_options.go in pkg/kubelet/cm/topologymanager.
 */
import { parseGoBoolean } from '../go-boolean.ts';
import { type Distances, maskOf } from './mask.ts';
import type { TopologySettings } from './policy.ts';

export interface TopologyRequest {
  readonly policy: string;
  readonly scope: string;
  readonly options: Readonly<Record<string, string>>;
  readonly nodeIds: readonly number[];
  /** Undefined if the machine does not report them. Checked only if a policy option needs them. */
  readonly distances: Distances | undefined;
}

export type TopologyStart =
  /** Every pod is admitted without hints. */
  | { readonly kind: 'off' }
  | { readonly kind: 'on'; readonly settings: TopologySettings; readonly warnings: readonly string[] }
  | { readonly kind: 'refused'; readonly message: string };

const CLOSEST = 'prefer-closest-numa-nodes';
const NODES_MAX = 'max-allowable-numa-nodes';
/** With more nodes there are too many combinations of hints. */
const NODES_MAX_DEFAULT = 8;

type Options =
  | { readonly kind: 'read'; readonly closest: boolean; readonly nodesMax: number }
  | { readonly kind: 'refused'; readonly message: string };

const refused = (message: string): { readonly kind: 'refused'; readonly message: string } => ({
  kind: 'refused',
  message,
});

function readOptions(options: Readonly<Record<string, string>>): Options {
  let closest = false;
  let nodesMax = NODES_MAX_DEFAULT;
  for (const [name, value] of Object.entries(options)) {
    if (name === CLOSEST) {
      const read = parseGoBoolean(value);
      if (read === undefined) return refused(`bad value for option "${name}": "${value}" is no boolean`);
      closest = read;
    } else if (name === NODES_MAX) {
      if (!/^[+-]?\d{1,9}$/.test(value)) {
        return refused(`unable to convert policy option to integer "${name}": "${value}" is no integer`);
      }
      nodesMax = Number(value);
      if (nodesMax < NODES_MAX_DEFAULT) {
        return refused(`the minimum value of "${name}" should not be less than ${NODES_MAX_DEFAULT}`);
      }
    } else return refused(`unknown Topology Manager Policy option: "${name}"`);
  }
  return { kind: 'read', closest, nodesMax };
}

const isPolicy = (text: string): text is TopologySettings['policy'] =>
  ['best-effort', 'restricted', 'single-numa-node'].includes(text);

/** The policy `none` reads no other setting. */
export function startTopology({ policy, scope, options, nodeIds, distances }: TopologyRequest): TopologyStart {
  if (policy === 'none') return { kind: 'off' };
  const read = readOptions(options);
  if (read.kind === 'refused') return read;
  const { closest, nodesMax } = read;
  if (closest && distances === undefined) return refused('error getting NUMA distances from the machine');
  if (nodeIds.length > nodesMax) return refused(`unsupported on machines with more than ${nodesMax} NUMA Nodes`);
  if (!isPolicy(policy)) return refused(`unknown policy: "${policy}"`);
  if (scope !== 'container' && scope !== 'pod') return refused(`unknown scope: "${scope}"`);
  return {
    kind: 'on',
    settings: { policy, scope, allNodes: maskOf(nodeIds), distances: closest ? distances : undefined },
    warnings:
      nodesMax > NODES_MAX_DEFAULT
        ? [`more than ${NODES_MAX_DEFAULT} NUMA nodes are allowed: admission may take long`]
        : [],
  };
}
