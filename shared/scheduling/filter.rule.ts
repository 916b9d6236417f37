/** What a Filter plugin returns for a node, in upstream's words. */
import type { NodeState } from './snapshot.rule.ts';

/** In the order in which they run. A node has the reasons of the first plugin that rejects it. */
export const PLUGINS = [
  'NodeUnschedulable',
  'NodeName',
  'TaintToleration',
  'NodeAffinity',
  'NodePorts',
  'NodeResourcesFit',
  'VolumeRestrictions',
  'VolumeBinding',
  'VolumeZone',
  'DynamicResources',
  'PodTopologySpread',
  'InterPodAffinity',
  'NodeDeclaredFeatures',
  /** Not upstream's: nodes without a recent heartbeat, while the safety gate is closed. */
  'SafetyGate',
] as const;
export type PluginName = (typeof PLUGINS)[number];

export interface Rejection {
  readonly plugin: PluginName;
  readonly reasons: readonly string[];
  /** Removing pods from the node might help (upstream's code Unschedulable, else UnschedulableAndUnresolvable). */
  readonly isResolvable: boolean;
}

/** Undefined: the node passes. */
export type Filter = (state: NodeState) => Rejection | undefined;
