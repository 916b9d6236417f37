/**
 * Events of node-monitor, word for word as the upstream controller tells them: people grep for these.
 * Source: pkg/controller/util/node/controller_utils.go. Node events carry the node's real uid.
 */
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

/** On the Node: it is watched from now on. */
export const registeredNode = (nodeName: string): EventText =>
  normal('RegisteredNode', `Node ${nodeName} event: Registered Node ${nodeName} in Controller`);

/** On the Node: it is gone, and no longer watched. */
export const removingNode = (nodeName: string): EventText =>
  normal('RemovingNode', `Node ${nodeName} event: Removing Node ${nodeName} from Controller`);

/** On the Node: only when we marked it, not when it said so itself. */
export const nodeNotReady = (nodeName: string): EventText =>
  normal('NodeNotReady', `Node ${nodeName} status is now: NodeNotReady`);

const GATE_REASONS = {
  missedTicks: 'ticks of our own were missing',
  failingPath: 'our own probe beats get no success',
} as const;

/** On the namespace of the leases: we doubt ourselves (D9). */
export const gateClosed = (reasons: readonly (keyof typeof GATE_REASONS)[]): EventText => ({
  type: 'Warning',
  reason: 'GateClosed',
  message: `No node is newly marked, tainted or evicted: ${reasons.map((reason) => GATE_REASONS[reason]).join(', ')}`,
  source: NODE_CONTROLLER,
});

/** On the namespace of the leases: `freshSince` is when every node's new grace began, RFC 3339. */
export const gateOpened = (freshSince: string): EventText =>
  normal('GateOpened', `Nodes are judged again; every node has a full grace from ${freshSince}`);

/** On an object that a controller could not change because it is too large. `what`: the change, such as `mark not ready`. */
export const notWritten = (kind: string, name: string, what: string): EventText => ({
  type: 'Warning',
  reason: 'ObjectTooLarge',
  message: `Cannot ${what}: ${kind} ${name} is too large to be stored with it. Shorten its annotations or status.`,
  source: NODE_CONTROLLER,
});

/** On a Pod whose Ready condition was set False because of its node. */
export const podNotReady: EventText = Object.freeze({
  type: 'Warning',
  reason: 'NodeNotReady',
  message: 'Node is not ready',
  source: NODE_CONTROLLER,
});
