/**
 * What a function is, as plain data: the template, the simulation and the tools read it, and none of them imports the
 * function itself. One manifest per function, beside the code that the function runs; functions/function-list.ts lists
 * them.
 */
import type { Policy } from '../fleet/policy.ts';
import type { AlarmManifest } from './alarm-manifest.ts';

/** Actions on items; IAM authorises a transaction by the actions of its parts. */
export type ItemAction =
  | 'BatchGetItem'
  | 'ConditionCheckItem'
  | 'DeleteItem'
  | 'GetItem'
  | 'PutItem'
  | 'Query'
  | 'Scan'
  | 'UpdateItem';

/** By partition of a table (shared/store/layout.ts); `*` stands for any text. */
export type PartitionUse = Readonly<Record<string, readonly ItemAction[]>>;

/**
 * What a function does with the items of each table, and no more. `npm run iam-proof` proves it against a recorded run;
 * what a run need not meet is in scripts/iam/exceptions.ts with its reason.
 */
export interface TableUse {
  readonly health?: readonly ItemAction[];
  readonly objects?: readonly ItemAction[];
  /** In `objects`, besides the actions on the whole table. */
  readonly objectPartitions?: PartitionUse;
  /** By partition: the table holds keys and bootstrap tokens beside the state of the controllers. */
  readonly control?: PartitionUse;
}

/** A commit of objects: the object, its log entry, the head of its shard, the decisions recorded with it. */
export const COMMIT = ['PutItem', 'UpdateItem'] as const satisfies readonly ItemAction[];
/** A claimed tick that carries nothing else. */
export const CLAIM = ['UpdateItem'] as const satisfies readonly ItemAction[];

/** Environment variables besides those of every function. What each means is in shared/config/environment.ts. */
export type FunctionVariable =
  | 'ACCESS_ENTRIES_FILE'
  | 'ACCOUNT_ID'
  | 'AUDIT_LOG_GROUP'
  | 'AUDIT_LOG_STREAM'
  | 'BEAT_TIMES'
  | 'CONTROL_TABLE'
  | 'EVENT_BUS'
  | 'HEALTH_TABLE'
  | 'HEARTBEAT_URL'
  | 'NODEKEEPER_POLICY'
  | 'OBJECTS_TABLE'
  | 'PART_QUEUE_URL'
  | 'PROBE_URL'
  | 'STATIC_TOKENS'
  | 'TICK_QUEUE_URL'
  | 'WAKE_FUNCTIONS'
  | 'WATCH_URL';

/** The policy and the three tables. */
export const POLICY_AND_TABLES = [
  'NODEKEEPER_POLICY',
  'HEALTH_TABLE',
  'OBJECTS_TABLE',
  'CONTROL_TABLE',
] as const satisfies readonly FunctionVariable[];

/** `DetachVolumes` includes describing them; only volumes with the tag of the cluster can be detached. */
export type Ec2Use = 'DescribeInstances' | 'DetachVolumes';

/** Field of the policy that holds the period of a tick. */
export type TickPeriod = Extract<keyof Policy, 'nodeMonitorPeriodSeconds' | 'podGcPeriodSeconds'>;

export type Trigger =
  /** Requests to the HTTP API: those that renew the Lease of a node, or all others. */
  | { readonly kind: 'http'; readonly requests: 'leaseRenewals' | 'others' }
  /** A URL of its own that streams answers. */
  | { readonly kind: 'functionUrl' }
  | {
      readonly kind: 'stream';
      /** Id of the construct. A different id replaces the event source mapping. */
      readonly id: string;
      readonly table: 'health' | 'objects';
      /** Event filter patterns of Lambda; a record that matches one of them is delivered. */
      readonly filters: readonly object[];
    }
  | {
      readonly kind: 'tick';
      readonly period: TickPeriod;
      /**
       * True: each tick starts the next one (functions/node-monitor/chain.ts). Otherwise node-monitor invokes the
       * function when there is work for it (shared/ticks/tick.ts), and a schedule does each minute, the sweep.
       */
      readonly chain?: true;
      /** How a missing tick is noticed. */
      readonly silence:
        | { readonly alarm: 'own' }
        /** By one alarm for several functions. `consequence` is a part of its description. */
        | { readonly alarm: 'background'; readonly as: string; readonly consequence: string };
    }
  /** Messages of the queue of parts (cdk/lib/part-queue.ts), several at once. */
  | { readonly kind: 'parts' }
  /** EC2 instances that enter one of these states. */
  | { readonly kind: 'instanceStates'; readonly id: string; readonly states: readonly string[] };

/** Features that a deployment may lack. */
export type Feature = 'streamedWatches' | 'instanceEnrolment' | 'heartbeatUrl';

/** What a function may do and reads from its environment. */
export interface FunctionNeeds {
  readonly tables?: TableUse;
  readonly environment?: readonly FunctionVariable[];
  readonly ec2?: readonly Ec2Use[];
  /** Whether it sends events to the event bus of the cluster. */
  readonly publishesEvents?: boolean;
}

export interface FunctionManifest extends FunctionNeeds {
  /** Folder under functions/, service name in logs and metrics, tag. In CamelCase it is the id of the construct. */
  readonly name: string;
  readonly description: string;
  readonly triggers: readonly Trigger[];
  /** Memory in MB. It sets the share of a CPU as well: 1,769 MB is one vCPU. */
  readonly memoryMegabytes: number;
  readonly timeoutSeconds: number;
  /** Functions that it wakes. Absent, with ticks that start each other: every function that ticks. */
  readonly wakes?: readonly string[];
  /** Additional needs where a feature is deployed. Policy statements keep the order of the list. */
  readonly needsWith?: Readonly<Partial<Record<Feature, readonly FunctionNeeds[]>>>;
  /** Alarms on its own metrics and calls. */
  readonly alarms?: readonly AlarmManifest[];
}
