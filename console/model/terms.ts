/** Words of the page that are not those of Kubernetes, each with one sentence that explains it. */
export const TERMS = {
  gate:
    'The safety gate closes when our own test heartbeats fail or ticks are missing: the fault is then likely ours. ' +
    'While it is closed, no node is newly marked and no pod is evicted.',
  tick: 'One pass of node-monitor, every 5 seconds unless the policy says otherwise: it evaluates every node and every zone.',
  'own heartbeats': 'Test heartbeats that the controller sends to itself the way nodes send theirs.',
  'total disruption':
    'Every zone is in full disruption. A fault of the controller is more likely than one of all machines, so all ' +
    'evictions stop.',
  'planned silence': 'Somebody announced that the node will be silent: until the end it is not marked.',
  flapping: 'The node was marked several times in a short time. New pods avoid it.',
  limiter: 'How many nodes of a zone lose their pods per second. In a disrupted zone it is slower, or stops.',
  'grace period': 'A node that sends no heartbeat for this long is marked Unknown.',
  'eviction queue': 'Nodes that wait until the limiter of their zone grants the NoExecute taint.',
  FullDisruption: 'No node of the zone is Ready.',
  PartialDisruption: 'More than half of the nodes of the zone are not Ready.',
} as const;

export type Term = keyof typeof TERMS;

export const isTerm = (text: string): text is Term => Object.hasOwn(TERMS, text);
