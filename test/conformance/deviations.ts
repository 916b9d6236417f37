/**
 * Conformance cases with an outcome of ours instead of upstream's: the test of that id asserts what we do. `deviation`
 * is the rule of docs/deviations.md. One object a line, sorted by id; ids of the agent's cases begin with `agent/`.
 */
export interface Deviation {
  readonly id: string;
  readonly deviation: string;
  readonly reason: string;
}

/** A case about something that we do not have: no test can carry its id. */
export type LeftOut = Pick<Deviation, 'id' | 'reason'>;

/** Sorted by id, as the table of docs/deviations.md. */
export const leftOut: readonly LeftOut[] = [
  { id: 'SX-23', reason: 'no sum of requests is stored per node, so none can be wrong' },
  { id: 'WJ-47', reason: 'a batch of pods is one transaction: all of its pods are created, or none' },
];

// biome-ignore format: one object a line
export const deviations: readonly Deviation[] = [
  { id: 'CL-01', deviation: 'D11', reason: 'an unknown instance needs two answers, one period apart' },
  { id: 'CL-07', deviation: 'D11', reason: 'an unknown instance needs two answers, one period apart' },
  { id: 'CL-11', deviation: 'D11', reason: 'without a providerID EC2 is not called, and nothing is deleted' },
  { id: 'CL-17', deviation: 'D11', reason: 'without a providerID EC2 is not called, and nothing is deleted' },
  { id: 'CL-19', deviation: 'D11', reason: 'there is no look-up by name' },
  { id: 'CL-21', deviation: 'D11', reason: 'an unknown instance needs two answers, one period apart' },
  { id: 'CL-27', deviation: 'D11', reason: 'without a providerID EC2 is not called' },
  { id: 'CL-29', deviation: 'D11', reason: 'there is no look-up by name; a missing id is a typed refusal to call' },
  { id: 'CL-33', deviation: 'D11', reason: 'without a providerID EC2 is not called, and nothing is deleted' },
  { id: 'CL-35', deviation: 'D11', reason: 'an unknown instance needs two answers, one period apart' },
  { id: 'CN-01', deviation: 'D11', reason: 'the providerID is what the node came with: without one EC2 is not asked' },
  { id: 'DT-11', deviation: 'policy', reason: 'podEvictionTimeoutSeconds sets the seconds of both' },
  { id: 'HB-27', deviation: 'D2', reason: 'state is kept by uid: a re-created node has its own startup grace' },
  { id: 'LG-01', deviation: 'taint eviction', reason: 'pods follow their own tolerationSeconds after the taint; nothing queues a node for direct deletion' },
  { id: 'LG-03', deviation: 'taint eviction', reason: 'tolerations decide, not kinds; nothing sets NodeLost or sends DeletingAllPods' },
  { id: 'LM-06', deviation: 'D3', reason: 'never and one per second are different limiters: tainting resumes, from a drained bucket' },
  { id: 'NR-14', deviation: 'not kept', reason: 'an eviction is named by its path; a body without a name is valid' },
  { id: 'NR-30', deviation: 'not kept', reason: 'an audience that the pod does not name is refused, also if a role grants it' },
  { id: 'NR-46', deviation: 'not kept', reason: 'there are no ResourceSlices' },
  { id: 'NX-02', deviation: 'L3', reason: 'one token at one moment, at any rate: the two nodes are tainted in two passes' },
  { id: 'NX-10', deviation: 'D6', reason: 'our swap keeps the time of the taint, and the timers of the pods continue' },
  { id: 'RA-05', deviation: 'D8', reason: 'a bad CIDR on a node is reported on that node and blocks no other node' },
  { id: 'RA-07', deviation: 'D8', reason: 'a bad CIDR on a node is reported on that node and blocks no other node' },
  { id: 'RA-19', deviation: 'D8', reason: 'an allocation that fails half-way releases what it assigned' },
  { id: 'RQ-06', deviation: 'D4', reason: 'a taint that could not be written leaves its node in its position; the next node of the zone gets the token' },
  { id: 'RQ-14', deviation: 'D4', reason: 'a taint that could not be written uses no token: the next node gets it' },
  { id: 'TE-12', deviation: 'D6', reason: 'lengthening a toleration moves the eviction' },
  { id: 'TE-40', deviation: 'D6', reason: 'each taint is evaluated with its own toleration, and our swap does not restart the timer' },
  { id: 'TE-44', deviation: 'D7', reason: 'timers of a deleted node are dropped; pod garbage collection owns its pods' },
  { id: 'TE-48', deviation: 'L7', reason: 'a failed deletion stays due and is retried at the next decision, while the taint is present' },
  { id: 'WC-13', deviation: 'workloads', reason: 'the most recent time of a schedule is computed, not estimated' },
  { id: 'WJ-24', deviation: 'workloads', reason: 'the deadline of a resumed Job counts from its resumption' },
];
