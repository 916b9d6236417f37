/**
 * Event texts of node-monitor, word for word those of upstream: operators search for them. Node events carry the Node's
 * uid. Source: pkg/controller/util/node/controller_utils.go.
 */

import { zoneText } from '../decisions/decision-record.ts';
import type { GateReason } from '../fleet/gate.ts';
import type { ZoneState } from '../fleet/zone-state.ts';

export const NODE_CONTROLLER = 'node-controller';

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** source.component */
  readonly source: string;
}

const normal = (reason: string, message: string): EventText => ({
  type: 'Normal',
  reason,
  message,
  source: NODE_CONTROLLER,
});

/** On the Node: node-monitor watches it from now on. */
export const registeredNode = (nodeName: string): EventText =>
  normal('RegisteredNode', `Node ${nodeName} event: Registered Node ${nodeName} in Controller`);

/** On the Node: it was deleted and is no longer watched. */
export const removingNode = (nodeName: string): EventText =>
  normal('RemovingNode', `Node ${nodeName} event: Removing Node ${nodeName} from Controller`);

/**
 * On the Node: node-monitor marked it. Not emitted when the node itself reported it.
 *
 * @param witnesses machines of its site that reported it as silent, if its grace period was shortened for that
 */
export const nodeNotReady = (nodeName: string, witnesses: readonly string[] = []): EventText =>
  normal(
    'NodeNotReady',
    `Node ${nodeName} status is now: NodeNotReady${witnesses.length === 0 ? '' : ` (silent on its site for ${witnesses.join(' and ')})`}`,
  );

const GATE_REASONS: Readonly<Record<GateReason, string>> = {
  missedTicks: 'node-monitor missed ticks',
  failingPath: 'heartbeat path not proven healthy (probe heartbeats failed, or ticks were late)',
};

export const gateReasonsText = (reasons: readonly GateReason[]): string =>
  reasons.map((reason) => GATE_REASONS[reason]).join(', ');

/** On the namespace of the Leases: the safety gate closed (D9). */
export const gateClosed = (reasons: readonly GateReason[]): EventText => ({
  type: 'Warning',
  reason: 'GateClosed',
  message: `Safety gate closed: ${gateReasonsText(reasons)}; no node is newly marked, tainted or evicted`,
  source: NODE_CONTROLLER,
});

/** On the ClusterStatus: the state of a zone changed. */
export const zoneChanged = (
  type: 'ZoneDisrupted' | 'ZoneRecovered',
  { zone, state, nodes, notReady }: { zone: string; state: ZoneState; nodes: number; notReady: number },
): EventText => ({
  type: type === 'ZoneDisrupted' ? 'Warning' : 'Normal',
  reason: type,
  message: `Zone ${zoneText(zone)} is ${state}: ${notReady} of ${nodes} nodes are not ready`,
  source: NODE_CONTROLLER,
});

/** On the ClusterStatus: total disruption began or ended. */
export const totalDisruption = (begins: boolean, zones: number): EventText =>
  begins
    ? {
        type: 'Warning',
        reason: 'TotalDisruption',
        message: `All zones (${zones}) are FullDisruption: no pod is evicted, because the cause is more likely on our side`,
        source: NODE_CONTROLLER,
      }
    : normal('TotalDisruptionEnded', 'Not all zones are FullDisruption: every node has a full grace period');

/** On the namespace of the Leases. `freshSince`: start of every node's new grace period, RFC 3339. */
export const gateOpened = (freshSince: string): EventText =>
  normal('GateOpened', `Safety gate open; every node has a full grace period from ${freshSince}`);

/** On the Node: its heartbeats are too rare for the grace period of its profile. */
export const beatIntervalTooLong = (message: string): EventText => ({
  type: 'Warning',
  reason: 'BeatIntervalTooLong',
  message,
  source: NODE_CONTROLLER,
});

/** On the Node: it began flapping. `why`: the marks and the limits. */
export const nodeFlapping = (why: string, { stableSeconds }: { readonly stableSeconds: number }): EventText => ({
  type: 'Warning',
  reason: 'Flapping',
  message: `${why}; taint nodekeeper.dev/flapping until ${stableSeconds} s pass without a mark`,
  source: NODE_CONTROLLER,
});

/**
 * On an object that a controller could not change because it is too large. `what`: the change, such as `mark not
 * ready`.
 */
export const notWritten = (kind: string, name: string, what: string): EventText => ({
  type: 'Warning',
  reason: 'ObjectTooLarge',
  message: `Cannot ${what}: ${kind} ${name} is too large to be stored with it. Shorten its annotations or status.`,
  source: NODE_CONTROLLER,
});

/** For a Pod with a Ready condition that was set False because of its node. */
export const podNotReady: EventText = Object.freeze({
  type: 'Warning',
  reason: 'NodeNotReady',
  message: 'Node is not ready',
  source: NODE_CONTROLLER,
});
