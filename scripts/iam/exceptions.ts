import type { FunctionName } from '../../functions/function-list.ts';

/** Grants that a recorded run need not use, each with the reason. An exception without a grant fails the proof. */
export interface Exception {
  readonly functions: readonly string[];
  readonly actions: readonly string[];
  /** Part of the ARN; `*` and `?` as in policies. */
  readonly resource: string;
  /** Some partitions of the grant. Absent: all of them. */
  readonly partitions?: readonly string[];
  readonly reason: string;
}

export const exceptions: readonly (Exception & { readonly functions: readonly FunctionName[] })[] = [
  {
    functions: ['heartbeat', 'api'],
    actions: ['dynamodb:UpdateItem'],
    resource: 'table/*Control',
    partitions: ['refusals'],
    reason: 'requests are counted here only when they are refused because an identity is over its limit',
  },
  {
    functions: ['heartbeat'],
    actions: ['dynamodb:UpdateItem'],
    resource: 'table/*Control',
    partitions: ['witnesses'],
    reason: 'a machine of a site with a relay reports here that another one is silent on its network',
  },
  {
    functions: ['node-monitor'],
    actions: ['dynamodb:DeleteItem'],
    resource: 'table/*Control',
    partitions: ['witnesses'],
    reason: 'a report is removed five minutes after it was last received',
  },
  {
    functions: ['node-monitor'],
    actions: ['dynamodb:BatchGetItem'],
    resource: 'table/*Health',
    reason: 'nodes are read between two ticks only while witnesses report one of them',
  },
  {
    functions: ['node-monitor'],
    actions: ['dynamodb:Query'],
    resource: 'table/*Control',
    partitions: ['refusals'],
    reason: 'refused requests are read once per minute, ten seconds after its end',
  },
  {
    functions: ['node-monitor'],
    actions: ['sqs:ChangeMessageVisibility'],
    resource: 'NodeMonitorTickQueue',
    reason: 'a message returns to the queue only when its tick failed before its claim',
  },
  {
    functions: ['node-monitor'],
    actions: ['dynamodb:DeleteItem'],
    resource: 'table/*Control',
    partitions: ['fleet'],
    reason: 'a queued node that recovers is removed by health-stream first, and an empty zone is rare',
  },
  {
    functions: ['node-marker'],
    actions: ['sqs:ChangeMessageVisibility'],
    resource: 'NodeMarkerPartsQueue',
    reason: 'a part returns to the queue only when one of its nodes could not be written',
  },
  {
    functions: ['node-monitor'],
    actions: ['lambda:InvokeFunction'],
    resource: 'function:*Scheduler',
    reason: 'object-stream wakes the scheduler first, while other changes keep coming',
  },
  {
    functions: ['scheduler'],
    actions: ['dynamodb:BatchGetItem', 'dynamodb:Scan'],
    resource: 'table/*Health',
    reason: 'heartbeats are read only while the safety gate is closed and a pod is due',
  },
  {
    functions: ['scheduler'],
    actions: ['dynamodb:GetItem'],
    resource: 'table/*Objects',
    reason: 'a victim is read again only after a contended deletion',
  },
  {
    functions: ['workloads'],
    actions: ['dynamodb:GetItem', 'dynamodb:PutItem'],
    resource: 'table/*Control',
    partitions: ['workload-shortages'],
    reason: 'the sweep of a quarter of an hour measures since when workloads are short of pods',
  },
  {
    functions: ['health-stream', 'object-stream', 'workloads'],
    actions: ['sqs:SendMessage'],
    resource: 'DeadLetters',
    reason: 'a record is given up after ten failures of the function, minutes apart',
  },
  {
    functions: ['health-stream'],
    actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
    resource: 'log-group:*',
    reason: 'it prints faults alone, and a sound run has none',
  },
  {
    functions: ['node-monitor'],
    actions: ['dynamodb:GetItem'],
    resource: 'table/*Objects',
    reason: 'a Node is read again when another write came first, and to lift a taint that health-stream left',
  },
  {
    functions: ['cloud-node'],
    actions: ['dynamodb:BatchGetItem'],
    resource: 'table/*Objects',
    reason: 'events are read when they are repeated: of a node that stops twice in an hour',
  },
  {
    functions: ['cloud-node'],
    actions: ['dynamodb:GetItem'],
    resource: 'table/*Control',
    partitions: ['cloud'],
    reason: 'a row is read again when its Node changed while EC2 was asked',
  },
  {
    functions: ['cloud-node'],
    actions: ['dynamodb:GetItem', 'dynamodb:PutItem'],
    resource: 'table/*Control',
    partitions: ['cloud-asked'],
    reason: 'the times of requests are stored only while more than 2,000 nodes are not Ready',
  },
  {
    functions: ['object-stream'],
    actions: ['dynamodb:PutItem'],
    resource: 'table/*Control',
    partitions: ['cloud'],
    reason: 'the row of a Node with the name of an earlier Node, when the record of its deletion was dropped',
  },
  {
    functions: ['object-stream', 'evictor'],
    actions: ['dynamodb:DeleteItem', 'dynamodb:GetItem', 'dynamodb:UpdateItem'],
    resource: 'table/*Control',
    partitions: ['parked'],
    reason: 'works are parked and retried only while a table throttles or refuses them',
  },
  {
    functions: ['pod-gc'],
    actions: ['dynamodb:BatchGetItem'],
    resource: 'table/*Health',
    reason: 'the sweep of a quarter of an hour, when it meets a pod of a node that it did not list',
  },
  {
    functions: ['api', 'watch'],
    actions: ['dynamodb:Query', 'dynamodb:Scan'],
    resource: 'table/*Health',
    reason: 'a list of Leases or of many Nodes: by Scan up to 5,000 nodes, by Query of each shard above',
  },
  {
    functions: ['health-stream'],
    actions: ['dynamodb:GetItem'],
    resource: 'table/*Control',
    partitions: ['fleet'],
    reason: 'the gate is read when a node that announced silence sends a heartbeat before its end',
  },
  {
    functions: ['node-monitor'],
    actions: ['dynamodb:PutItem'],
    resource: 'table/*Control',
    partitions: ['silences'],
    reason: 'counted silences are written with the first tick of the next hour',
  },
  {
    functions: ['api'],
    actions: ['dynamodb:GetItem'],
    resource: 'table/*Control',
    partitions: ['silences'],
    reason: 'an hour of counted silences by its name, which the run has none of',
  },
];
